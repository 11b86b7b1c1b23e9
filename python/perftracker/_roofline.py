# SPDX-License-Identifier: Apache-2.0
"""perftracker roofline: blocks of iterations with the loader's own batches beside blocks in which
its first batches are given again.

The plan is a function of the number of the iteration, so all ranks of a job change together and
say nothing to each other. A loader with a length gives as many batches in an epoch as before: the
ranks of a job never disagree about where an epoch ends. Between blocks, iterations are left out:
there the loader's children become idle, or what they had prepared is used up.

What happens is appended to one file per training process, a line at a time, for the program
(src/cmd/roofline/rooflog.h). On the first error, or if batches cannot be repeated, the file says
why and the loader is the job's alone again. No exception of this module's reaches the job.
"""

import functools
import os
import socket
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from perftracker import _rank, _signals
from perftracker._batches import CannotRepeatError, Kept, Watched, keep, size_of

FOLDER_VARIABLE = "PERFTRACKER_ROOFLINE"
PLAN_VARIABLE = "PERFTRACKER_ROOFLINE_PLAN"
WARM_ITERATIONS = 5  # more than these and those that fill the store of batches
SKIP_LEAST = 3
PREFETCHED_MOST = 256
DATASETS_MAX = 64
STREAK_LEAST = 2
TURNS_MOST = 2
IDLE_WAIT_S = 20.0
IDLE_LOOK_S = 0.005


class RefusalError(Exception):
    """Batches cannot be repeated; the text says why."""


class Plan(NamedTuple):
    """Which iterations are measured. Segments follow each other: skip, then block iterations."""

    block: int
    pairs: int
    keep: int
    bytes_max: int
    skip: int = SKIP_LEAST

    @property
    def warm(self) -> int:
        return WARM_ITERATIONS + self.keep

    def segment(self, index: int) -> Tuple[int, int]:
        """The number of the segment of an iteration, and the iteration's place in it."""
        return divmod(index - self.warm, self.skip + self.block)

    def repeats(self, segment: int) -> bool:
        """Real, repeated, repeated, real, ...: a drift of the pace favors neither."""
        return segment % 4 in (1, 2)

    @property
    def end(self) -> int:
        return self.warm + 2 * self.pairs * (self.skip + self.block)


class _Dataset:
    """What a loader reads, and when the loop asked for its batch before."""

    __slots__ = ("dataset", "steps", "index", "streak")

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset  # kept, so that its id is its own
        self.steps = -1  # backward passes until then; -1: no batch yet
        self.index = 0
        self.streak = 0  # batches in a row with a backward pass in front of each


class _Iterator:
    """One pass over a loader."""

    __slots__ = ("length", "given", "repeated", "drained", "prefetched")

    def __init__(self, loader_iter: Any) -> None:
        self.given = self.repeated = self.drained = 0
        self.prefetched = _prefetched(loader_iter)
        try:
            self.length: Optional[int] = len(loader_iter._index_sampler)
        except (AttributeError, TypeError, NotImplementedError):
            self.length = None

    def is_complete(self) -> bool:
        return self.repeated > 0 and self.length is not None and self.given >= self.length


def _prefetched(loader_iter: Any) -> int:
    """How many batches the children prepare before the loop asks for them."""
    workers = getattr(loader_iter, "_num_workers", 0) or 0
    factor = getattr(loader_iter, "_prefetch_factor", None) or 2
    return min(int(workers) * int(factor), PREFETCHED_MOST)


class Experiment:
    """One per training process; used by the thread that trains."""

    def __init__(self, plan: Plan, folder: str, synchronize: Callable[[], None]) -> None:
        self.plan = plan
        self.folder = folder
        self.synchronize = synchronize
        self.active = True  # the loader is looked at
        self.over = False  # ... until passes with repeated batches have their length
        self.fd = -1
        self.steps = 0  # backward passes and steps of optimizers
        self.thread = 0  # that made them
        self.iterators: "weakref.WeakKeyDictionary[Any, _Iterator]" = weakref.WeakKeyDictionary()
        self.datasets: Dict[int, _Dataset] = {}
        self.trained = False  # since the batch before of the loader that is asked now
        self.loader: Any = None  # the dataset of the loader that feeds the training
        self.index = 0  # of the iteration
        self.kept: List[Kept] = []
        self.watched: Optional[Watched] = None  # the batch that the loop has now
        self.copies = False
        self.latest: Any = None  # iterator
        self._open_block()

    # Files

    def say(self, *words: Any) -> None:
        if self.fd < 0:
            self._open()
        os.write(self.fd, (" ".join(str(word) for word in words) + "\n").encode())

    def _open(self) -> None:
        path = os.path.join(self.folder, "%d.roofline" % os.getpid())
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        rank, _, world = _rank.identity()
        host = socket.gethostname().split(".")[0] or "?"
        self.say("perftracker-roofline", 1)
        self.say("rank", rank, world, os.getpid(), time.time_ns(), host)

    def refuse(self, why: str) -> None:
        """The loader is the job's alone from here on."""
        self._end()
        try:
            self.say("refused", " ".join(why.split())[:400])
        except OSError:
            pass  # the program sees that the file has no end

    # Marks

    def stepped(self, _: Any) -> None:
        if self.over:
            return
        if self.steps == 0:
            self._silently(self._open_unless_open)
        self.steps += 1
        self.thread = threading.get_ident()

    def _open_unless_open(self) -> None:
        if self.fd < 0:
            self._open()

    def _silently(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except RefusalError as error:
            self.refuse(str(error))
        except CannotRepeatError as error:
            self.refuse("the batches cannot be repeated: %s" % error)
        except StopIteration:
            raise
        except BaseException as error:
            the_jobs = _signals.is_the_jobs(error)
            self.refuse("interrupted" if the_jobs else "error of the hook: %r" % error)
            if the_jobs:
                raise
        return None

    # Batches

    def next(self, loader_iter: Any, original: Callable[[Any], Any]) -> Any:
        """In place of the iterator's __next__."""
        if self.over:
            self._count(loader_iter)
            return original(loader_iter)
        given = self._silently(self.turn, loader_iter)
        if given is not None:
            return given[0]
        begin_ns = time.perf_counter_ns()
        batch = original(loader_iter)
        if not self.over:
            self._silently(self.took, loader_iter, batch, time.perf_counter_ns() - begin_ns)
        return batch

    def _count(self, loader_iter: Any) -> None:
        """Ends a pass after its length, also if some of its own batches are left."""
        state = self.iterators.get(loader_iter)
        if state is None:
            return
        if state.is_complete():
            raise StopIteration
        state.given += 1

    def turn(self, loader_iter: Any) -> Optional[List[Any]]:
        """The loop asks for a batch: a list with one to repeat, or None for the loader's own."""
        own_ns = time.perf_counter_ns()
        state = self.iterators.get(loader_iter)
        if state is None:
            state = self.iterators[loader_iter] = _Iterator(loader_iter)
        is_training = self._is_training(loader_iter, state)
        if state.is_complete():
            raise StopIteration
        state.given += 1
        if not is_training:
            return None
        if not self.trained:
            return None  # fetched ahead, or an evaluation of the same data
        if self.thread != threading.get_ident():
            raise RefusalError("another thread than the one that trains reads the DataLoader")
        self._look_at_watched()
        segment, place = self.plan.segment(self.index)
        if segment >= 0 and self._at_bound(segment, place, loader_iter, state):
            return None
        self.index += 1
        if self.latest is not state:
            self.epochs += 1
            self.latest = state
        if segment < 0 or not self.plan.repeats(segment):
            self.own_ns += time.perf_counter_ns() - own_ns
            return None
        state.repeated += 1
        given = self._give()
        self.own_ns += time.perf_counter_ns() - own_ns
        return given

    def took(self, loader_iter: Any, batch: Any, wait_ns: int) -> None:
        """The loader gave a batch of its own."""
        if self.loader is None or loader_iter._dataset is not self.loader:
            return
        own_ns = time.perf_counter_ns()
        self.load_ns += wait_ns
        self.elements += size_of(batch)
        if self.index <= self.plan.warm:
            self.watched = Watched(batch)
            self._keep(batch)
        self.own_ns += time.perf_counter_ns() - own_ns

    def _is_training(self, loader_iter: Any, state: _Iterator) -> bool:
        """Whether backward passes lie between the batches of this loader; sets self.trained."""
        dataset = loader_iter._dataset
        seen = self.datasets.get(id(dataset))
        if seen is None:
            if len(self.datasets) >= DATASETS_MAX:
                raise RefusalError("more than %d datasets are read" % DATASETS_MAX)
            seen = self.datasets[id(dataset)] = _Dataset(dataset)
        self.trained = 0 <= seen.steps < self.steps
        seen.streak = seen.streak + 1 if self.trained else 0
        passed = self.index - seen.index  # iterations of the training's loader meanwhile
        seen.steps, seen.index = self.steps, self.index
        if dataset is self.loader:
            return True
        if seen.streak < STREAK_LEAST:
            return False  # an evaluation: its first batch may follow a backward pass
        if self.loader is not None and 0 < passed <= TURNS_MOST:
            raise RefusalError("two DataLoaders feed the training; only one can be repeated")
        if self.loader is not None and passed > 0:
            return False  # a single batch of another loader once in a while
        if self.loader is not None and self.index > self.plan.warm:
            raise RefusalError("the training goes on with another dataset than it began with")
        if self.loader is None:
            self._begin(loader_iter, state)
        self.loader = dataset
        return True

    def _begin(self, loader_iter: Any, state: _Iterator) -> None:
        self.plan = self.plan._replace(skip=max(SKIP_LEAST, state.prefetched))
        length = -1 if state.length is None else state.length
        workers = getattr(loader_iter, "_num_workers", 0) or 0
        self.say("loader", workers, state.prefetched, length)
        self.say("plan", self.plan.warm, self.plan.skip, self.plan.block, self.plan.pairs)

    def _keep(self, batch: Any) -> None:
        if len(self.kept) >= self.plan.keep:
            return
        held = sum(kept.held_bytes for kept in self.kept)
        if held and held + self.kept[-1].held_bytes > self.plan.bytes_max:
            return
        kept = keep(batch)
        if held + kept.held_bytes <= self.plan.bytes_max:
            self.kept.append(kept)
        elif not held:
            raise RefusalError(
                "a batch has %d MB, more than may be kept (--memory)" % (kept.held_bytes >> 20)
            )

    def _look_at_watched(self) -> None:
        """Whether the loop has changed the tensors of the batch before."""
        if self.watched is not None and self.watched.changed():
            self.copies = True
        self.watched = None

    def _give(self) -> List[Any]:
        if not self.kept:
            raise RefusalError("no batch was kept")
        kept = self.kept[self.index % len(self.kept)]
        if not self.copies and kept.changed():
            raise RefusalError(
                "the training changes its batches in place, but not from the beginning"
            )
        self.elements += kept.elements
        return [kept.give(self.copies)]

    # Blocks

    def _open_block(self) -> None:
        self.begin_ns = self.load_ns = self.own_ns = self.elements = self.epochs = 0
        self.begin_index = self.index

    def _at_bound(self, segment: int, place: int, loader_iter: Any, state: _Iterator) -> bool:
        """Ends and begins blocks. Returns True at the end of the experiment."""
        if place == 0:
            if segment == 0:
                held = sum(kept.held_bytes for kept in self.kept)
                self.say("kept", len(self.kept), held, int(self.copies))
            elif self.begin_ns:
                self._close_block(segment - 1)
            if self.index >= self.plan.end:
                self.say("done")
                self._end()
                return True
            self._change(segment, loader_iter, state)
        elif place == self.plan.skip:
            self.synchronize()
            self._open_block()
            self.begin_ns = time.perf_counter_ns()
        return False

    def _close_block(self, segment: int) -> None:
        self.synchronize()
        wall_ns = time.perf_counter_ns() - self.begin_ns - self.own_ns
        word = "repeated" if self.plan.repeats(segment) else "real"
        count = self.index - self.begin_index
        numbers = (self.begin_index, count, wall_ns, self.load_ns, self.elements, self.epochs)
        self.say("block", word, *numbers)
        self.begin_ns = 0

    def _end(self) -> None:
        self.over = True
        for loader_iter, state in list(self.iterators.items()):
            if state.repeated == 0:
                del self.iterators[loader_iter]
        self.active = len(self.iterators) > 0
        self.kept = []
        self.datasets.clear()
        self.watched = self.latest = self.loader = None

    def _change(self, segment: int, loader_iter: Any, state: _Iterator) -> None:
        before = segment > 0 and self.plan.repeats(segment - 1)
        now = self.plan.repeats(segment)
        if now and not before:
            _await_idle(loader_iter)
        elif before and not now and state.repeated - state.drained >= state.prefetched > 0:
            self._drain(loader_iter, state)

    def _drain(self, loader_iter: Any, state: _Iterator) -> None:
        """Uses up what the children prepared meanwhile, which the loop would not have to await."""
        for _ in range(state.prefetched):
            state.drained += 1
            try:
                _original_next(loader_iter)
            except StopIteration:
                return

    def iterating(self, loader: Any, original: Callable[[Any], Any]) -> Any:
        """In place of DataLoader.__iter__: its children's start counts as loading."""
        begin_ns = time.perf_counter_ns()
        made = original(loader)
        if self.over:
            self.iterators.pop(made, None)
            self.active = len(self.iterators) > 0
        else:
            self._silently(self._iterated, loader, made, time.perf_counter_ns() - begin_ns)
        return made

    def _iterated(self, loader: Any, made: Any, took_ns: int) -> None:
        self.iterators.pop(made, None)  # with persistent workers the object is the one before
        is_training = self.loader is not None and getattr(loader, "dataset", None) is self.loader
        if is_training and self.plan.repeats(self.plan.segment(self.index)[0]):
            self.own_ns += took_ns


def _await_idle(loader_iter: Any) -> None:
    """Until the children have prepared all that they may."""
    queue = getattr(loader_iter, "_data_queue", None)
    until = time.monotonic() + IDLE_WAIT_S
    while queue is not None and time.monotonic() < until:
        outstanding = getattr(loader_iter, "_tasks_outstanding", 0)
        if queue.qsize() >= outstanding:
            return
        time.sleep(IDLE_LOOK_S)


_experiment: Optional[Experiment] = None
_original_next: Callable[[Any], Any]


def _forked_child() -> None:
    """A loader's child, or a rank that was forked before the first batch: that one begins anew."""
    global _experiment
    if _experiment is not None and _experiment.steps == 0 and _experiment.fd < 0:
        return
    _experiment = None


def _synchronize() -> None:
    """Waits for the device, so that a block has its kernels."""
    torch: Any = sys.modules.get("torch")
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
        return
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        accelerator.synchronize()


def _parse_plan(text: str) -> Plan:
    block, pairs, kept, bytes_max = (int(word) for word in text.split())
    return Plan(max(block, 1), max(pairs, 1), max(kept, 1), bytes_max)


def attach() -> None:
    """Wraps torch's loader, if torch is imported and the program asks for it. Once."""
    global _experiment
    folder = os.environ.get(FOLDER_VARIABLE, "")
    if not folder or "torch" not in sys.modules or _experiment is not None:
        return
    try:
        plan = _parse_plan(os.environ.get(PLAN_VARIABLE, ""))
        _experiment = Experiment(plan, folder, _synchronize)
        _wrap()
        os.register_at_fork(after_in_child=_forked_child)
    except Exception as error:
        _signals.pass_on(error)
        _experiment = None


def _nothing(*_: Any) -> None:
    pass


def _stepped(mark: Any) -> None:
    experiment = _experiment
    if experiment is not None:
        experiment.stepped(mark)


def _wrap() -> None:
    global _original_next
    from torch.utils.data import DataLoader, dataloader

    from perftracker import _torch

    hooks = _torch.Hooks(_nothing, _nothing, *[_nothing] * 7)
    hooks.step_begins = hooks.backward_begins = hooks.scaler_begins = _stepped
    _torch.wrap(hooks)
    cls = dataloader._BaseDataLoaderIter
    _original_next = cls.__next__
    cls.__next__ = _next_of(_original_next)  # type: ignore[method-assign]
    DataLoader.__iter__ = _iter_of(DataLoader.__iter__)  # type: ignore[method-assign]


def _next_of(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        experiment = _experiment
        if experiment is None or not experiment.active:
            return original(self)
        return experiment.next(self, original)

    __next__._torchdynamo_disable = True  # type: ignore[attr-defined]
    return __next__


def _iter_of(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        experiment = _experiment
        if experiment is None or not experiment.active:
            return original(self)
        return experiment.iterating(self, original)

    return __iter__
