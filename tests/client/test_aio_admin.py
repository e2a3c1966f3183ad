"""The asynchronous admin on the caller's loop."""

import asyncio

import pytest
import uvloop

from barnabas.client.aio_admin import Admin
from barnabas.client.errors import ClientClosed, NoBrokersAvailable
from tests.client._kit import settings_for


class TestTheAsynchronousAdmin:
    def test_it_runs_on_either_loop(self, bootstrap: str, topic: str) -> None:
        async def main() -> None:
            async with Admin(settings_for(bootstrap)) as admin:
                name = f"{topic}-{type(asyncio.get_running_loop()).__module__}"
                await admin.create_topic(name, 2)
                assert len((await admin.describe_topic(name)).partitions) == 2
                await admin.delete_topics([name])

        asyncio.run(main())
        uvloop.run(main())

    def test_the_first_call_starts_it(self, bootstrap: str) -> None:
        async def main() -> None:
            admin = Admin(settings_for(bootstrap))
            assert repr(admin) == f"Admin({bootstrap}; not started)"
            found = await asyncio.gather(*(admin.describe_cluster() for _ in range(5)))
            assert len({cluster.id for cluster in found}) == 1
            await admin.close()
            await admin.close()
            with pytest.raises(ClientClosed):
                await admin.describe_cluster()

        asyncio.run(main())

    def test_closing_fails_the_calls_under_way(self, bootstrap: str) -> None:
        async def main() -> None:
            admin = Admin(settings_for(bootstrap))
            await admin.start()
            call = asyncio.ensure_future(admin.list_groups())
            await asyncio.sleep(0)
            await admin.close()
            with pytest.raises(ClientClosed):
                await call

        asyncio.run(main())

    def test_a_failed_start_can_be_tried_again(self) -> None:
        async def main() -> None:
            admin = Admin(settings_for("127.0.0.1:1"))
            for _ in range(2):
                with pytest.raises(NoBrokersAvailable):
                    await admin.start()
            await admin.close()

        asyncio.run(main())
