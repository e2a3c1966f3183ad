"""Orders of a shop for coffee and what belongs to it: invented, but as orders are.

Some customers order often and most rarely, some products sell and others do not, and a region has its share
of the customers.  The same seed gives the same orders; only the times are those of the caller.
"""

import json
import random
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

__all__ = ["PRODUCTS", "REGIONS", "Order", "Orders"]

REGIONS: Final = {"Africa": 9, "Americas": 26, "Asia": 31, "Europe": 28, "Oceania": 6}
"""Region -> its share of the customers."""

PRODUCTS: Final = (
    ("espresso beans 1 kg", "coffee", 18.90, 30),
    ("filter coffee 500 g", "coffee", 9.40, 26),
    ("decaf beans 1 kg", "coffee", 19.50, 7),
    ("green tea 100 g", "tea", 7.20, 14),
    ("assam tea 250 g", "tea", 11.80, 9),
    ("oat drink 6 l", "pantry", 13.10, 16),
    ("cane sugar 2 kg", "pantry", 5.60, 11),
    ("paper filters 100", "supplies", 3.90, 18),
    ("descaler 1 l", "supplies", 8.70, 6),
    ("moka pot", "equipment", 34.00, 5),
    ("hand grinder", "equipment", 79.00, 4),
    ("kettle with thermometer", "equipment", 119.00, 2),
    ("espresso machine", "equipment", 649.00, 1),
)
"""Name, category, price in euros, how well it sells."""

# fmt: off
_FIRST: Final = (
    "Ada", "Bela", "Chidi", "Dora", "Emil", "Farah", "Grace", "Hiro", "Ines", "Jonas", "Kemi", "Lucia",
    "Mateo", "Nadia", "Omar", "Priya", "Quinn", "Rosa", "Sven", "Tala",
)
_LAST: Final = (
    "Abebe", "Berg", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Haddad", "Ito", "Jansen", "Kaya",
    "Lopez", "Mensah", "Novak", "Okafor", "Patel", "Rossi", "Silva", "Tanaka", "Weber",
)
# fmt: on
_CUSTOMERS: Final = 2_000


class Order(NamedTuple):
    """One order: its fields, and the record it becomes."""

    fields: dict[str, Any]
    key: bytes
    value: bytes


class Orders:
    """Makes one order after the other.  Not for several threads at once."""

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)
        regions = self._chance.choices(list(REGIONS), list(REGIONS.values()), k=_CUSTOMERS)
        self._customers = [
            (1000 + number, f"{self._chance.choice(_FIRST)} {self._chance.choice(_LAST)}", region)
            for number, region in enumerate(regions)
        ]
        self._weights = [product[3] for product in PRODUCTS]
        self._number = 0

    def next(self, now_ms: int) -> Order:
        chance = self._chance
        # The square prefers the first customers: the regulars.
        number, name, region = self._customers[int(chance.random() ** 2 * _CUSTOMERS)]
        product, category, price, _ = chance.choices(PRODUCTS, self._weights)[0]
        self._number += 1
        fields = {
            "order_id": f"o-{self._number:07d}",
            "customer_id": number,
            "customer": name,
            "region": region,
            "product": product,
            "category": category,
            "quantity": 1 if category == "equipment" else chance.choice((1, 1, 1, 2, 2, 3, 4, 6)),
            "unit_price": price,
            "ordered_at": datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        }
        return Order(fields, str(number).encode(), json.dumps(fields, separators=(",", ":")).encode())
