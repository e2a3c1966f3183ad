"""The asynchronous admin: every call on the loop that the caller runs."""

from barnabas.client.admin_configs import ConfigCalls
from barnabas.client.admin_features import FeatureCalls
from barnabas.client.admin_lag import LagCalls
from barnabas.client.admin_topics import TopicCalls
from barnabas.client.admin_transactions import TransactionCalls

__all__ = ["Admin"]


class Admin(TopicCalls, ConfigCalls, LagCalls, TransactionCalls, FeatureCalls):
    """Looks after topics, settings, groups, offsets, records, transactions and features.

        async with Admin(bootstrap_servers="localhost:9092") as admin:
            await admin.create_topic("orders", 6)

    Calls may run side by side.  `timeout_ms` of a call takes the place of default.api.timeout.ms.
    """
