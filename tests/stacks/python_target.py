# SPDX-License-Identifier: Apache-2.0
"""Threads in known places: recursion, a generator, map() and a lambda, a lock, a loop.

Argument: a file to which faulthandler writes the stacks of all threads, once they are there.
"""

import faulthandler
import sys
import threading
import time

LOCK = threading.Lock()
DEPTH = 5


def numbers():
    time.sleep(1000)
    yield 1


def recurse(depth):
    if depth > 0:
        return recurse(depth - 1)
    return list(
        map(
            lambda _: [number for number in numbers()],
            [1],
        )
    )


class Worker:
    def wait(self):
        with LOCK:
            pass

    def compute(self):
        while True:
            pass


def main():
    LOCK.acquire()
    for function in (Worker().wait, Worker().compute):
        threading.Thread(target=function, daemon=True).start()
    out = open(sys.argv[1], "w")  # noqa: SIM115
    faulthandler.dump_traceback_later(1, file=out, exit=False)
    print("ready", flush=True)
    recurse(DEPTH)


main()
