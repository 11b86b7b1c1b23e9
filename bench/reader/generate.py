#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a Kineto trace of a given size: a training loop with Python stacks.

Deterministic: the same size gives the same bytes. Keys, spacing, order of the
sections and mean bytes an event follow what torch 2.4 to 2.13 write with
with_stack and record_shapes on CUDA: operators per thread, then Python frames,
then device and runtime events interleaved with flows, metadata, base time last.
"""

import random
import sys

BASE_NS = 1767189312000000000
START_US = 3743411222
PID = 542
AUTOGRAD = 639
STREAM = 7

MODULES = [
    f"torch/nn/modules/{m}.py({line}): {f}"
    for m, line in [
        ("module", 1751),
        ("linear", 125),
        ("conv", 554),
        ("activation", 133),
        ("normalization", 217),
        ("container", 250),
        ("dropout", 70),
        ("loss", 1293),
    ]
    for f in ("_call_impl", "_wrapped_call_impl", "forward", "__getattr__", "__setattr__")
]
USER = [f"train/model_{i % 13}.py({17 + 7 * i}): block_{i}" for i in range(200)]
BUILTIN = [
    f"<built-in method {m} of type object at 0x7f{i:010x}>"
    for i in range(30)
    for m in ("linear", "conv2d", "add", "matmul")
]
BUILTIN += [
    f"<built-in function {m}>" for m in ("len", "isinstance", "getattr", "hasattr", "print")
]
FRAMES = MODULES + USER + BUILTIN * 2
OPS = [
    "aten::linear",
    "aten::addmm",
    "aten::mm",
    "aten::t",
    "aten::transpose",
    "aten::as_strided",
    "aten::add_",
    "aten::empty",
    "aten::copy_",
    "aten::_to_copy",
    "aten::native_layer_norm",
    "autograd::engine::evaluate_function: AddmmBackward0",
    "AddmmBackward0",
]
KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3>)",
    "ampere_sgemm_128x64_tn",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
    "(int, float, float const*, float const*, float const*, float*, float*, float*)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t"
    "<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::"
    "{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, "
    "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()"
    "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
]


def us(ns):
    return f"{START_US * 1000 + ns // 1000}.{ns % 1000:03d}"


def dur(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


class Writer:
    """Appends events to a file and knows how many bytes it wrote."""

    def __init__(self, out):
        self.out, self.bytes, self.ev, self.first = out, 0, 0, True

    def text(self, text):
        self.out.write(text)
        self.bytes += len(text)

    def event(self, text):
        self.text(text if self.first else ",\n" + text)
        self.first = False
        self.ev += 1


def python_frames(w, rnd, size):
    """A walk over a call tree; ids count up, children lie inside their parents."""
    stack, ident, now = [], 0, 1000
    while w.bytes < size:
        depth = len(stack)
        if depth < 6 or (depth < 28 and rnd.random() < 0.5):
            ident += 1
            parent = stack[-1][0] if stack else "null"
            life = rnd.randrange(1500, 40000) * (30 - depth)
            if stack:
                life = min(life, max(stack[-1][1] - now, 500))
            w.event(
                f'  {{\n    "ph": "X", "cat": "python_function", "name": "{rnd.choice(FRAMES)}", '
                f'"pid": {PID}, "tid": {PID},\n    "ts": {us(now)}, "dur": {dur(life)},\n'
                f'    "args": {{\n      "Python parent id": {parent}, "Python id": {ident}, '
                f'"Ev Idx": {w.ev}\n    }}\n  }}'
            )
            stack.append((ident, now + life))
            now += rnd.randrange(200, 1500)
        else:
            now = max(now, stack.pop()[1]) if depth > 8 else now + 700
            if depth <= 8:
                stack.pop()
    return now


def operators(w, rnd, size, tid, first):
    now, ext = 2000, first
    while w.bytes < size:
        a, b, c = rnd.randrange(1, 4096), rnd.randrange(1, 4096), rnd.randrange(1, 4096)
        length = rnd.randrange(900, 60000)
        w.event(
            f'  {{\n    "ph": "X", "cat": "cpu_op", "name": "{rnd.choice(OPS)}", "pid": {PID}, '
            f'"tid": {tid},\n    "ts": {us(now)}, "dur": {dur(length)},\n    "args": {{\n'
            f'      "External id": {ext},"Record function id": 0, '
            f'"Concrete Inputs": ["", "", "", ""], '
            f'"Input type": ["float", "float", "float", "Scalar"], "Input Strides": '
            f'[[{b}, 1], [{c}, 1], [1], []], "Input Dims": [[{a}, {b}], [{b}, {c}], [{c}], []], '
            f'"Ev Idx": {w.ev}\n    }}\n  }}'
        )
        now += rnd.randrange(300, length + 300)
        ext += 1
    return ext


def device(w, rnd, size, last_ext):
    now, corr, stream_free = 5000, 23451, 0
    while w.bytes < size:
        ext = rnd.randrange(1, last_ext)
        length, delay = rnd.randrange(1500, 80000), rnd.randrange(4000, 200000)
        # A stream runs its kernels one after the other.
        begin = max(now + delay, stream_free)
        stream_free = begin + length
        threads = rnd.choice((64, 128, 256, 512))
        w.event(
            f'  {{\n    "ph": "X", "cat": "kernel", "name": "{rnd.choice(KERNELS)}", "pid": 0, '
            f'"tid": {STREAM},\n    "ts": {us(begin)}, "dur": {dur(length)},\n    "args": {{\n'
            f'      "External id": {ext},      "queued": 0, "device": 0, "context": 1,      '
            f'"stream": '
            f'{STREAM}, "correlation": {corr},      "registers per thread": 16,      '
            f'"shared memory": 0, '
            f'     "blocks per SM": 0.012500,      "warps per SM": 0.050000,      "grid": '
            f'[{rnd.randrange(1, 5000)}, 1, 1],      "block": [{threads}, 1, 1],      '
            f'"est. achieved occupancy %": 31\n    }}\n  }}'
        )
        w.event(
            f'  {{\n    "ph": "f", "id": {corr}, "pid": 0, "tid": {STREAM}, "ts": {us(begin)},\n'
            f'    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }}'
        )
        w.event(
            f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", '
            f'"pid": {PID}, '
            f'"tid": {PID},\n    "ts": {us(now)}, "dur": {dur(rnd.randrange(2000, 15000))},\n'
            f'    "args": {{\n      "External id": {ext},      "cbid": 211, "correlation": {corr}\n'
            f"    }}\n  }}"
        )
        w.event(
            f'  {{\n    "ph": "s", "id": {corr}, "pid": {PID}, "tid": {PID}, "ts": {us(now)},\n'
            f'    "cat": "ac2g", "name": "ac2g"\n  }}'
        )
        now += rnd.randrange(3000, 130000)
        corr += 1


def metadata(w):
    for tid, name in ((PID, "thread 542 (python3)"), (AUTOGRAD, "thread 639 (pt_autograd_0)")):
        w.event(
            f'  {{\n    "name": "thread_name", "ph": "M", "ts": {us(0)}, "pid": {PID}, '
            f'"tid": {tid},\n    "args": {{\n      "name": "{name}"\n    }}\n  }}'
        )


def generate(path, size):
    rnd = random.Random(20260917)
    with open(path, "w", encoding="ascii", buffering=1 << 20) as out:
        w = Writer(out)
        w.text(
            '\n{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, "name": '
            '"NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028765696\n    }\n  ],\n'
            '  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},\n'
            '  "record_shapes": 1,\n  "with_stack": 1,\n  "traceEvents": [\n'
        )
        # Shares of the text that make about half of the events Python frames.
        ext = operators(w, rnd, int(size * 0.06), AUTOGRAD, 1)
        ext = operators(w, rnd, int(size * 0.24), PID, ext)
        python_frames(w, rnd, int(size * 0.66))
        device(w, rnd, size - 600, ext)
        metadata(w)
        w.text(
            '\n  ],\n  "traceName": "/tmp/trace.json",\n  "displayTimeUnit": "ms",\n'
            f'  "baseTimeNanoseconds": {BASE_NS}\n}}'
        )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: generate.py FILE MEGABYTES")
    generate(sys.argv[1], int(float(sys.argv[2]) * 1e6))
