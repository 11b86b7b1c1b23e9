# SPDX-License-Identifier: Apache-2.0
"""Equations 6 to 11 over columns, in NumPy: the center's twin.

    twin.py FILE    columns and accusations as center_bench writes them

Prints the milliseconds of one core from columns to the abnormal workers of each
function, and whether they are those that the center accuses.
"""

from __future__ import annotations

import pathlib
import re
import sys
import time

import numpy as np

COMM, HOST = 2, 1  # enum event_class
WITNESS_DIFFERENCE, WITNESS_EXPECTATION = 1, 2
THRESHOLDS = pathlib.Path(__file__).resolve().parents[2] / "src" / "model" / "thresholds.h"
MIN_GAIN = 0.01  # localize_defaults(): 1 %
EXPECTED = {HOST: 0.01, COMM: 0.3}
ABSENT = 65535


def threshold(name: str) -> float:
    """The default of a threshold of the source's list."""
    found = re.search(rf"^#define {name} ([\d.e-]+)u?$", THRESHOLDS.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"twin.py: {THRESHOLDS.name} has no {name}")
    return float(found[1])


DELTA, K = threshold("DIFFER_DELTA"), threshold("DIFFER_K")
MIN_BETA, MIN_COMMON = threshold("DIFFER_MIN_BETA"), threshold("COMMON_MIN_FRAC")
PEERS = int(threshold("DIFFER_PEERS"))


def fractions(codes: np.ndarray) -> np.ndarray:
    """Numbers of 16-bit codes (code16.h); NaN for an absent one."""
    shift = np.maximum(codes.astype(np.int64) // 1024 - 1, 0)
    values = ((codes.astype(np.int64) - shift * 1024) << np.minimum(shift, 52)) / 2.0**30
    values[codes == ABSENT] = np.nan
    return values


def normalized(column: np.ndarray) -> np.ndarray:
    """Eq. 8. A column of nothing but NaN is no dimension."""
    if np.isnan(column[0]) and np.isnan(column).all():
        return None
    top = np.nanmax(column)
    return column / top if top > 0 else column


def deltas(columns: list[np.ndarray], sample: np.ndarray) -> np.ndarray:
    """Eq. 9 and 10: the share of the sampled peers that differ, for every worker."""
    dims = [d for d in map(normalized, columns) if d is not None]
    mixed = any(np.isnan(d).any() for d in dims)
    far = np.zeros(len(columns[0]), dtype=np.int32)
    distance = np.empty(len(far))
    part = np.empty(len(far))
    for peer in sample:
        distance.fill(0)
        for dim in dims:
            np.subtract(dim, dim[peer], out=part)
            np.abs(part, out=part)
            if mixed:
                np.nan_to_num(part, copy=False, nan=0.0)
            distance += part
        far += distance >= DELTA
    return far / len(sample)


def odd_ones(columns: list[np.ndarray], sample: np.ndarray) -> np.ndarray:
    """Eq. 11, the part about peers."""
    delta = deltas(columns, sample)
    median = np.median(delta)
    threshold = median + K * np.median(np.abs(delta - median))
    return np.flatnonzero((columns[0] > MIN_BETA) & (delta > threshold))


def localize(functions: list, sample: np.ndarray, resample) -> set:
    found = set()
    for index, (kind, columns) in enumerate(functions):
        beta = columns[0]
        odd = odd_ones(columns, sample)
        normal = np.median(beta)
        if kind == COMM:
            if len(odd) == 0 or np.isnan(columns[1]).all():
                continue
            gain = (beta[odd] - normal).max()
            few = [c[odd] for c in columns]
            if len(odd) >= 3:
                narrowed = odd_ones(few, resample(len(odd)))
                odd = odd[narrowed] if len(narrowed) else odd
            if gain < MIN_GAIN:
                continue
        else:
            odd = odd[beta[odd] - normal >= MIN_GAIN]
        if len(odd):
            found.add((WITNESS_DIFFERENCE, index, odd.astype(np.uint32).tobytes()))
    for index, (kind, columns) in enumerate(functions):
        if kind != HOST:
            continue
        distance = np.maximum(columns[0] - EXPECTED[HOST], 0)  # eq. 6 and 7
        accused = np.flatnonzero(columns[0] > max(EXPECTED[HOST], MIN_BETA))
        named = any(f == index for _, f, _ in found)
        if distance.max() >= MIN_COMMON and not named:
            found.add((WITNESS_EXPECTATION, index, accused.astype(np.uint32).tobytes()))
    return found


def splitmix(seed: int):
    mask = 2**64 - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def draw(cnt: int, seed: int = 1) -> np.ndarray:
    """The sample of peers that the center draws (differ_draw)."""
    random, order = splitmix(seed), np.arange(cnt)
    if cnt <= PEERS:
        return order
    for i in range(PEERS):
        k = i + next(random) % (cnt - i)
        order[i], order[k] = order[k], order[i]
    return order[:PEERS]


def read(path: pathlib.Path):
    data = path.read_bytes()
    workers, function_cnt = np.frombuffer(data, "<u4", 2)
    peers = min(int(workers), PEERS)
    sample = np.frombuffer(data, "<u4", peers, 8).astype(np.int64)
    offset, functions = 8 + 4 * peers, []
    for _ in range(function_cnt):
        kind = int(np.frombuffer(data, "<u4", 1, offset)[0])
        offset += 4
        columns = []
        for _ in range(3):
            columns.append(fractions(np.frombuffer(data, "<u2", workers, offset)))
            offset += 2 * int(workers)
        functions.append((kind, columns))
    accused = set()
    while offset < len(data):
        witness, function, cnt = (int(x) for x in np.frombuffer(data, "<u4", 3, offset))
        offset += 12
        accused.add((witness, function, data[offset : offset + 4 * cnt]))
        offset += 4 * cnt
    return functions, sample, accused


def main() -> int:
    functions, sample, accused = read(pathlib.Path(sys.argv[1]))
    begin = time.process_time()
    found = localize(functions, sample, draw)
    ms = (time.process_time() - begin) * 1e3
    print(f"twin_ms={ms:.3f} accusations={len(found)} same={int(found == accused)}")
    return 0 if found == accused else 1


if __name__ == "__main__":
    sys.exit(main())
