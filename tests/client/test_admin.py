"""The synchronous admin: the calls of the asynchronous one, and a life that leaves nothing behind."""

import gc
import inspect
import threading

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.client.admin import Admin
from barnabas.client.aio_admin import Admin as AsyncAdmin
from barnabas.client.errors import (
    ClientClosed,
    NoBrokersAvailable,
)
from tests.client._kit import settings_for
from tests.client._servers import ClientServer


def public(face: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(face, inspect.isfunction)
        if not name.startswith("_") and name != "start"
    }


class TestTheTwoFaces:
    def test_they_have_the_same_calls_with_the_same_parameters_and_results(self) -> None:
        assert public(Admin) == public(AsyncAdmin)

    def test_they_say_the_same_about_each_call(self) -> None:
        for name in public(Admin).keys() - {"close"}:
            assert inspect.getdoc(getattr(Admin, name)) == inspect.getdoc(getattr(AsyncAdmin, name)), name


class TestLife:
    def test_closing_twice_is_fine_and_no_thread_is_left(self, bootstrap: str) -> None:
        before = threading.active_count()
        admin = Admin(settings_for(bootstrap))
        assert threading.active_count() == before + 1
        admin.close()
        admin.close()
        assert threading.active_count() == before

    def test_a_call_after_close_says_so(self, bootstrap: str) -> None:
        admin = Admin(settings_for(bootstrap))
        admin.close()
        with pytest.raises(ClientClosed, match="the client was closed"):
            admin.list_topics()

    def test_a_failed_start_leaves_no_thread(self) -> None:
        before = threading.active_count()
        with pytest.raises(NoBrokersAvailable, match=r"127.0.0.1:1: connect: Connection refused"):
            Admin(settings_for("127.0.0.1:1"))
        assert threading.active_count() == before

    def test_a_wrong_setting_is_named_with_the_right_one(self) -> None:
        with pytest.raises(ConfigFault, match=r"bootstrap.server: .* did you mean bootstrap.servers"):
            Admin(bootstrap_server="localhost:9092")

    def test_an_admin_that_was_forgotten_ends_its_thread(self, bootstrap: str) -> None:
        admin = Admin(settings_for(bootstrap))
        thread = admin._thread._thread
        del admin
        gc.collect()
        thread.join(10)
        assert not thread.is_alive()

    def test_threads_may_call_side_by_side(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 1)
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda: found.append(admin.describe_topic(topic).name)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [topic] * 8

    def test_its_repr_says_where_it_is_connected(self, admin: Admin, bootstrap: str) -> None:
        assert repr(admin) == f"Admin({bootstrap}; open)"


@pytest.mark.slow
def test_calls_go_on_after_the_broker_restarts(own_server: ClientServer, topic: str) -> None:
    with Admin(settings_for(own_server.bootstrap_servers)) as admin:
        admin.create_topic(topic, 1)
        own_server.stop()
        own_server.start()
        assert admin.describe_topic(topic).name == topic
        assert [each.name for each in admin.list_topics()] == [topic]
