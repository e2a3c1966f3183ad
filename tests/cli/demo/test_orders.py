"""barnabas.cli.demo.orders."""

import json
from collections import Counter

from barnabas.cli.demo.orders import PRODUCTS, REGIONS, Orders


def test_an_order_is_a_record_with_the_customer_as_key() -> None:
    order = Orders().next(1_767_225_600_123)
    assert json.loads(order.value) == order.fields
    assert order.key == str(order.fields["customer_id"]).encode()
    assert order.fields["order_id"] == "o-0000001"
    assert order.fields["ordered_at"] == "2026-01-01T00:00:00.123+00:00"


def test_the_same_seed_gives_the_same_orders() -> None:
    one, two, other = Orders(1), Orders(1), Orders(2)
    first = [one.next(0) for _ in range(50)]
    assert first == [two.next(0) for _ in range(50)]
    assert first != [other.next(0) for _ in range(50)]


def test_orders_are_numbered_and_of_products_and_regions_there_are() -> None:
    orders = Orders()
    made = [orders.next(0).fields for _ in range(2_000)]
    assert len({order["order_id"] for order in made}) == 2_000
    assert {order["region"] for order in made} == set(REGIONS)
    assert {order["product"] for order in made} <= {product[0] for product in PRODUCTS}
    assert {order["unit_price"] for order in made} <= {product[2] for product in PRODUCTS}
    assert all(order["quantity"] >= 1 for order in made)


def test_some_customers_are_regulars_and_one_has_one_home() -> None:
    orders = Orders()
    made = [orders.next(0).fields for _ in range(5_000)]
    often = Counter(order["customer_id"] for order in made)
    assert often.most_common(1)[0][1] > 10
    assert len(often) > 500
    homes = {order["customer_id"]: order["region"] for order in made}
    assert all(homes[order["customer_id"]] == order["region"] for order in made)
