"""A moment of the demo for the tests of what is drawn from it."""

from barnabas.cli.demo.facts import Facts, Landing
from barnabas.cli.demo.run import Outcome

ORDER = {
    "order_id": "o-0000042", "customer": "Ada Berg", "region": "Asia", "quantity": 2, "product": "moka pot",
    "unit_price": 34.0,
}  # fmt: skip

FACTS = Facts(
    address="localhost:9092",
    engine="Spark SQL",
    state="running",
    seconds=65.4,
    left_s=15.0,
    total_s=60.0,
    orders=12_345,
    orders_per_s=2001.2,
    orders_bytes=3_000_000,
    rows_in=12_000,
    rows_in_per_s=1999.9,
    rows_out=210,
    rows_out_per_s=5.0,
    batches=42,
    batch_ms=180.4,
    lag_messages=345,
    lag_seconds=0.21,
    landing=Landing(7, 123_456),
    results=[
        {"region": "Asia", "orders": 8000, "revenue": 1234.5},
        {"region": "Europe", "orders": 4000, "revenue": 10},
    ],
    latest=[ORDER],
    history=[(100.0, 5), (2000.0, 345)],
)


def outcome(
    counted: int = 12_345, rows: int | None = 12_345, stopped: bool = False, repeated: int = 0
) -> Outcome:
    return Outcome(FACTS, FACTS, 1.26, counted, repeated, rows, stopped)
