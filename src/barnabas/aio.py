"""The client for asyncio: `Producer`, `Consumer`, `Admin` with the names and methods of the blocking ones."""

from barnabas.client.aio import Admin, Consumer, Producer

__all__ = ["Admin", "Consumer", "Producer"]
