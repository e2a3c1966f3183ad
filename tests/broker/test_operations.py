"""barnabas.broker.operations: the bit fields that Apache Kafka answers without an authorizer."""

from barnabas.broker.operations import ALL_ON_CLUSTER, ALL_ON_GROUP, ALL_ON_TOPIC, NOT_ASKED, Operation
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.broker._groups import Member
from tests.broker._wire import WireClient


def test_the_numbers_are_kafkas() -> None:
    assert (ALL_ON_TOPIC, ALL_ON_CLUSTER, ALL_ON_GROUP) == (3576, 8096, 3400)
    assert all(1 << operation & (ALL_ON_TOPIC | ALL_ON_CLUSTER) for operation in Operation)


def test_metadata_tells_them_when_asked(client: WireClient, topic: str) -> None:
    named = [MetadataRequestTopic(name=topic), MetadataRequestTopic(name="nowhere")]
    for version in range(8, 14):
        request = MetadataRequest(
            topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        request.include_cluster_authorized_operations = version <= 10
        response = client.call(request, version, MetadataResponse)
        assert [found.topic_authorized_operations for found in response.topics] == [ALL_ON_TOPIC, NOT_ASKED]
        assert response.cluster_authorized_operations == (ALL_ON_CLUSTER if version <= 10 else NOT_ASKED)


def test_so_do_the_cluster_and_its_groups(client: WireClient, group: str) -> None:
    for version in range(3):
        asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
        told = client.call(asked, version, DescribeClusterResponse).cluster_authorized_operations
        assert told == ALL_ON_CLUSTER
    Member(client, group).start()
    for version in range(3, 7):
        wanted = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
        (found,) = client.call(wanted, version, DescribeGroupsResponse).groups
        assert found.authorized_operations == ALL_ON_GROUP
