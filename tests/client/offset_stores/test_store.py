"""What stores share."""

from barnabas.base.types import TopicPartition
from barnabas.client.errors import CommitFailed
from barnabas.client.offset_stores.store import overtaken


def test_being_overtaken_names_group_and_partition() -> None:
    error = overtaken("billing", TopicPartition("orders", 3))
    assert isinstance(error, CommitFailed)
    assert "group 'billing' for orders-3" in str(error)
    assert not error.retriable
