"""Where clients come in: an address, its name, and what its connections are granted."""

import errno
import socket
from dataclasses import dataclass, field
from typing import Final

from barnabas.net.errors import ListenFault, cause_of
from barnabas.net.limits import ConnectionLimits

__all__ = ["Listener", "open_listener"]

_PORT_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Listener:
    """One `listeners` entry.  Host "" is every interface, port 0 any free one."""

    name: str
    host: str
    port: int
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    connections_max: int = 2**31 - 1  # listener.name.<name>.max.connections
    backlog: int = 512  # socket.listen.backlog.size
    send_buffer_bytes: int = -1  # socket.send.buffer.bytes; -1 leaves it to the system
    receive_buffer_bytes: int = -1  # socket.receive.buffer.bytes

    def prepare(self, sock: socket.socket) -> None:
        """Sets the options of an accepted connection."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)


def open_listener(listener: Listener) -> tuple[list[socket.socket], int]:
    """Listening sockets on every address that the host's name has, all on one port."""
    addresses = _resolve(listener)
    tries = 1 if listener.port else _PORT_TRIES
    while True:
        tries -= 1
        try:
            return _open_all(listener, addresses)
        except OSError as error:
            # With port 0 the first address chose a port that another program has on the second.
            if error.errno == errno.EADDRINUSE and tries:
                continue
            raise _fault(listener, error) from error


def _resolve(listener: Listener) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    if not listener.host:
        # One socket for both families, where there is IPv6.
        family, host = (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")
        return [(family, (host, listener.port))]
    try:
        found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise _fault(listener, error) from error
    unique = dict.fromkeys((family, (str(address[0]), int(address[1]))) for family, _, _, _, address in found)
    return list(unique)


def _open_all(
    listener: Listener, addresses: list[tuple[socket.AddressFamily, tuple[str, int]]]
) -> tuple[list[socket.socket], int]:
    sockets: list[socket.socket] = []
    port = listener.port
    try:
        for family, (host, _) in addresses:
            try:
                sock = _open(listener, family, host, port)
            except OSError as error:
                # A name may have an IPv6 address on a machine without IPv6.
                if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and len(addresses) > 1:
                    continue
                raise
            sockets.append(sock)
            port = sock.getsockname()[1]
        if not sockets:
            raise OSError(errno.EADDRNOTAVAIL, "no address of this name can be used here")
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets, port


def _open(listener: Listener, family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" takes IPv4 too, as Java does it; a named address beside an IPv4 one must not.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        if listener.receive_buffer_bytes > 0:
            # Before listen, for the window's scale is agreed on with the first packet.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, listener.receive_buffer_bytes)
        sock.setblocking(False)
        sock.bind((host, port))
        sock.listen(listener.backlog)
    except OSError:
        sock.close()
        raise
    return sock


def _fault(listener: Listener, error: OSError) -> ListenFault:
    address = f"{listener.host or '*'}:{listener.port}"
    if error.errno == errno.EADDRINUSE:
        cause = "the port is in use; stop the program that has it, or choose another port"
    elif error.errno == errno.EACCES:
        cause = "the system does not let this user listen on it; choose a port above 1023"
    else:
        cause = cause_of(error)
    return ListenFault(f"listener {listener.name} cannot listen on {address}: {cause}")
