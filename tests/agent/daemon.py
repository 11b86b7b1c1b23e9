# SPDX-License-Identifier: Apache-2.0
"""A daemon for tests: takes workers in, reads their rings, writes orders.

It follows src/format/shared/message.h and block.h, and knows nothing of the real daemon.
"""

import array
import mmap
import os
import selectors
import socket
import struct
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional

MESSAGE = struct.Struct("<IHHIIiiiiQQQqqQ512s")
HEAD = struct.Struct("<IIIIQQQII")
ORDER = struct.Struct("<QQQQIIIIII")  # behind its id
OVERHEAD = struct.Struct("<QQQQII")
RECORD = struct.Struct("<qqIHHQ")
RING = 16384
ORDER_AT = HEAD.size + 8
OVERHEAD_AT = ORDER_AT + ORDER.size
CANCELED_AT = ORDER_AT + 32
TAKEN_AT = OVERHEAD_AT + OVERHEAD.size
RING_AT = TAKEN_AT + 8

U64, STEP = 2**64 - 1, 0x9E3779B97F4A7C15  # of splitmix
HELLO, BEGUN, DONE, MISSED, BYE = 1, 2, 3, 4, 5
SOURCE_AUTO, SOURCE_AGENT, SOURCE_TORCH = 0, 1, 2
DATALOADER, DATALOADER_END, OPTIMIZER, ITERATION, GC, OPTIMIZER_BEGIN, BACKWARD = range(1, 8)


def finish(x: int) -> int:
    """splitmix_finish() of src/base/splitmix.h."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & U64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & U64
    return x ^ x >> 31


def first_slice_is_on(number: int, start: int) -> bool:
    """overhead_slice_is_on() of src/format/shared/block.h."""
    seed = finish((number * STEP & U64) ^ start)
    return finish(seed) >> 63 == 1


class Message(NamedTuple):
    type: int
    pid: int
    rank: int
    local_rank: int
    world_size: int
    order_id: int
    step: int
    window_ns: int
    mono_ns: int
    wall_ns: int
    stall_ns: int
    text: str


class Mark(NamedTuple):
    time_ns: int
    value: int
    mark: int
    detail: int


class Worker:
    def __init__(self, hello: Message, fd: int, conn: socket.socket) -> None:
        self.hello = hello
        self.fd = fd
        self.block = mmap.mmap(fd, 0)
        self.conn = conn
        self.messages: List[Message] = []
        self.closed = False

    def head(self) -> Any:
        return HEAD.unpack_from(self.block, 0)

    def step(self) -> int:
        return self.head()[4]

    def marks(self) -> List[Mark]:
        count = self.head()[6]
        marks = []
        for position in range(max(0, count - RING), count):
            offset = RING_AT + position % RING * RECORD.size
            time_ns, value, seq, mark, detail, _ = RECORD.unpack_from(self.block, offset)
            assert seq == position + 1, "torn record"
            marks.append(Mark(time_ns, value, mark, detail))
        return marks

    def order(
        self,
        number: int,
        start: int,
        window_ns: int,
        least: int = 1,
        most: int = 0,
        stride: int = 0,
        source: int = SOURCE_AUTO,
        hz: int = 0,
        exact: int = 0,
    ) -> None:
        fields = (start, window_ns, least, most, 0, stride, source, hz, exact, 0)
        ORDER.pack_into(self.block, ORDER_AT, *fields)
        struct.pack_into("<Q", self.block, HEAD.size, number)

    def measure_overhead(self, number: int, start: int, slice_steps: int, slices: int) -> None:
        """Of the collectors that are always on; they are off in the first slice."""
        while first_slice_is_on(number, start):
            number += 1
        OVERHEAD.pack_into(self.block, OVERHEAD_AT, 0, start, slice_steps, slices, 0, 0)
        struct.pack_into("<Q", self.block, OVERHEAD_AT, number)

    def cancel(self) -> None:
        struct.pack_into("<I", self.block, CANCELED_AT, 1)

    def taken(self, number: int) -> None:
        """The window of this order has been read: the worker may let its pages go."""
        struct.pack_into("<Q", self.block, TAKEN_AT, number)

    def got(self, kind: int) -> List[Message]:
        return [message for message in self.messages if message.type == kind]


class Daemon:
    """Runs in a thread. on_poll(worker), if given, is called every 2 ms for each worker."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "socket")
        self.folder = folder
        self.workers: List[Worker] = []
        self.bad = 0
        self.on_poll: Optional[Any] = None
        self.deaf = False  # leaves messages in the socket
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._by_conn: Dict[socket.socket, Worker] = {}
        self._stop = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def environment(self) -> Dict[str, str]:
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        paths = [os.path.join(root, "python"), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "PERFTRACKER_SOCKET": self.path,
            "PERFTRACKER_AGENT": os.environ["PERFTRACKER_AGENT"],
            "PERFTRACKER_DIR": self.folder,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        }

    def kill(self) -> None:
        """As if the daemon died: every descriptor of its is gone."""
        self._stop = True
        self._thread.join()
        for conn in list(self._by_conn):
            conn.close()
        for worker in self.workers:
            if worker.fd >= 0:
                os.close(worker.fd)
            worker.fd = -1
        self._listener.close()

    def _run(self) -> None:
        while not self._stop:
            if self.deaf:
                time.sleep(0.002)
            for key, _ in [] if self.deaf else self._selector.select(0.002):
                if key.fileobj is self._listener:
                    conn = self._listener.accept()[0]
                    self._selector.register(conn, selectors.EVENT_READ)
                else:
                    self._receive(key.fileobj)
            if self.on_poll is not None:
                for worker in self.workers:
                    self.on_poll(worker)

    def _receive(self, conn: Any) -> None:
        fds = array.array("i")
        data, ancillary, _, _ = conn.recvmsg(MESSAGE.size + 1, socket.CMSG_SPACE(4))
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) // 4 * 4])
        if not data:
            self._selector.unregister(conn)
            if conn in self._by_conn:
                self._by_conn[conn].closed = True
            return
        if len(data) != MESSAGE.size:
            self.bad += 1
            return
        self._take(conn, data, fds)

    def _take(self, conn: Any, data: bytes, fds: Any) -> None:
        fields = MESSAGE.unpack(data)
        message = Message(
            fields[2],
            fields[3],
            *fields[5:8],
            *fields[9:15],
            text=fields[15].split(b"\0")[0].decode(),
        )
        if fields[0] != 0x50544D31 or fields[1] != 1:
            self.bad += 1
        elif message.type == HELLO:
            self._by_conn[conn] = Worker(message, fds[0], conn)
            self.workers.append(self._by_conn[conn])
        else:
            self._by_conn[conn].messages.append(message)


def wait_for(condition: Any, limit_s: float = 60.0) -> bool:
    """Polls; for tests that watch another process."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return False
