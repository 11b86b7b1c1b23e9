/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/replay/replayscript.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

/* Python: standard library and torch, of any version since 1.8. */
/* clang-format off */
static const char begin[] =
	"#!/usr/bin/env python3\n"
	"\"\"\"Runs the matrix multiplications and collectives of one rank of a job again, and compares.\n"
	"\n"
	"Written by perftracker replay. Alone it runs the multiplications:\n"
	"    python3 replay.py --device cuda\n"
	"The collectives need as many ranks as their group had:\n"
	"    torchrun --nproc-per-node 8 replay.py\n"
	"A ratio above 1: the record took longer than this device takes now. Run it on a device that is\n"
	"known to be healthy, too: what differs between the two is the device.\n"
	"\"\"\"\n"
	"import argparse\n"
	"import json\n"
	"import os\n"
	"import statistics\n"
	"import sys\n"
	"import time\n"
	"\n"
	"import torch\n"
	"\n"
	"RECORD = json.loads(r'''";

static const char end[] =
	"''')\n"
	"DTYPES = {\n"
	"    \"float\": torch.float32, \"float32\": torch.float32, \"double\": torch.float64,\n"
	"    \"float64\": torch.float64, \"half\": torch.float16, \"float16\": torch.float16,\n"
	"    \"bfloat16\": torch.bfloat16, \"int\": torch.int32, \"long\": torch.int64, \"byte\": torch.uint8,\n"
	"    \"char\": torch.int8, \"short\": torch.int16, \"bool\": torch.bool, \"long int\": torch.int64,\n"
	"    \"unsigned char\": torch.uint8, \"signed char\": torch.int8,\n"
	"}\n"
	"FLUSH_BYTES = 256 << 20  # more than the caches of a GPU\n"
	"\n"
	"\n"
	"class Skip(Exception):\n"
	"    \"\"\"Says why something can't be run.\"\"\"\n"
	"\n"
	"\n"
	"def dtype_of(name):\n"
	"    found = DTYPES.get(name.lower().replace(\"c10::\", \"\"))\n"
	"    if found is None:\n"
	"        raise Skip(\"type %s\" % name)\n"
	"    return found\n"
	"\n"
	"\n"
	"def tensor(dims, strides, dtype, device):\n"
	"    if strides and len(strides) == len(dims) and all(strides):\n"
	"        made = torch.empty_strided(dims, strides, dtype=dtype, device=device)\n"
	"    else:\n"
	"        made = torch.empty(dims, dtype=dtype, device=device)\n"
	"    return made.normal_() if dtype.is_floating_point else made.zero_()\n"
	"\n"
	"\n"
	"def multiplication(entry, device):\n"
	"    \"\"\"A function without arguments, and its floating-point operations.\"\"\"\n"
	"    op = {\"aten::mm\": torch.mm, \"aten::bmm\": torch.bmm, \"aten::addmm\": torch.addmm,\n"
	"          \"aten::baddbmm\": torch.baddbmm}[entry[\"op\"]]\n"
	"    count = 3 if \"add\" in entry[\"op\"] else 2\n"
	"    dims, types = entry[\"dims\"][:count], entry[\"types\"][:count]\n"
	"    if len(dims) < count or not all(dims):\n"
	"        raise Skip(\"shapes %s\" % (dims,))\n"
	"    strides = (entry[\"strides\"] + [[]] * count)[:count]\n"
	"    operands = [tensor(d, s, dtype_of(t), device) for d, s, t in zip(dims, strides, types)]\n"
	"    flop = 2 * operands[-1].shape[-1]\n"
	"    for size in dims[-2]:\n"
	"        flop *= size\n"
	"    return lambda: op(*operands), flop\n"
	"\n"
	"\n"
	"def collective(entry, device, world):\n"
	"    dist = torch.distributed\n"
	"    if world < 2:\n"
	"        raise Skip(\"start it by torchrun with as many ranks as the group had\")\n"
	"    if entry[\"group\"] > 0 and entry[\"group\"] != world:\n"
	"        raise Skip(\"its group had %d ranks, here are %d\" % (entry[\"group\"], world))\n"
	"    ins, outs = entry[\"dims\"]\n"
	"    dtype = dtype_of(entry[\"types\"][0])\n"
	"    first, second = (torch.zeros(size, dtype=dtype, device=device) for size in (ins, outs))\n"
	"    name = entry[\"op\"].lower().strip(\"_\").replace(\"_base\", \"\")\n"
	"    name = {\"all_reduce\": \"allreduce\", \"all_gather\": \"allgather\"}.get(name, name)\n"
	"    if name.startswith(\"allreduce\"):\n"
	"        return lambda: dist.all_reduce(first), 0\n"
	"    if name == \"broadcast\":\n"
	"        return lambda: dist.broadcast(first, 0), 0\n"
	"    if name == \"reduce\":\n"
	"        return lambda: dist.reduce(first, 0), 0\n"
	"    if name in (\"allgather\", \"allgather_into_tensor\") and outs == ins * world:\n"
	"        return lambda: dist.all_gather_into_tensor(second, first), 0\n"
	"    if name in (\"reduce_scatter\", \"reduce_scatter_tensor\") and ins == outs * world:\n"
	"        return lambda: dist.reduce_scatter_tensor(second, first), 0\n"
	"    if name in (\"alltoall\", \"all_to_all\") and ins == outs and ins % world == 0:\n"
	"        return lambda: dist.all_to_all_single(second, first), 0\n"
	"    raise Skip(\"no rule for this collective and its sizes\")\n"
	"\n"
	"\n"
	"class Clock:\n"
	"    \"\"\"Times of one call, in microseconds: of the device's work, or of the call on a CPU.\"\"\"\n"
	"\n"
	"    def __init__(self, device, distributed):\n"
	"        self.device, self.distributed = device, distributed\n"
	"        self.flush = None\n"
	"        if device.type == \"cuda\":\n"
	"            self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=device)\n"
	"\n"
	"    def once(self, call):\n"
	"        if self.distributed:\n"
	"            torch.distributed.barrier()\n"
	"        if self.device.type != \"cuda\":\n"
	"            begin = time.perf_counter()\n"
	"            call()\n"
	"            return (time.perf_counter() - begin) * 1e6\n"
	"        # The flush hides the time of the launch, and leaves nothing in the caches.\n"
	"        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
	"        self.flush.zero_()\n"
	"        begin.record()\n"
	"        call()\n"
	"        end.record()\n"
	"        torch.cuda.synchronize(self.device)\n"
	"        return begin.elapsed_time(end) * 1e3\n"
	"\n"
	"    def measure(self, call, repeat):\n"
	"        for _ in range(max(3, repeat // 5)):\n"
	"            self.once(call)\n"
	"        return sorted(self.once(call) for _ in range(repeat))\n"
	"\n"
	"\n"
	"def run(entry, args, device, world):\n"
	"    result = dict(entry)\n"
	"    try:\n"
	"        if entry[\"collective\"]:\n"
	"            call, flop = collective(entry, device, world)\n"
	"        else:\n"
	"            call, flop = multiplication(entry, device)\n"
	"        times = Clock(device, entry[\"collective\"]).measure(call, args.repeat)\n"
	"    except Skip as why:\n"
	"        return dict(result, skipped=str(why))\n"
	"    except RuntimeError as error:  # out of memory, or an operator that the device lacks\n"
	"        return dict(result, skipped=str(error).splitlines()[0][:200])\n"
	"    # A recorded collective includes the wait for the other ranks: its shortest one has least.\n"
	"    recorded = entry[\"min_us\"] if entry[\"collective\"] else entry[\"median_us\"]\n"
	"    result[\"replayed_us\"] = statistics.median(times)\n"
	"    result[\"replayed_min_us\"] = times[0]\n"
	"    result[\"ratio\"] = recorded / result[\"replayed_us\"]\n"
	"    if flop:\n"
	"        result[\"gflops_recorded\"] = flop / recorded / 1e3\n"
	"        result[\"gflops_replayed\"] = flop / result[\"replayed_us\"] / 1e3\n"
	"    return result\n"
	"\n"
	"\n"
	"def shape_text(entry):\n"
	"    if entry[\"collective\"]:\n"
	"        return \"%d -> %d elements\" % tuple(entry[\"dims\"])\n"
	"    return \" \".join(\"x\".join(map(str, dims)) for dims in entry[\"dims\"] if dims)\n"
	"\n"
	"\n"
	"def print_table(results, total):\n"
	"    print(\"Recorded %s (%s), here on %s\" % (RECORD[\"source\"], RECORD[\"where\"], total[\"device\"]))\n"
	"    print(\"%-16s %-36s %-10s %6s %11s %11s %6s %9s %9s\" % (\n"
	"        \"operator\", \"shapes\", \"type\", \"count\", \"recorded us\", \"here us\", \"ratio\", \"GFLOP/s\",\n"
	"        \"here\"))\n"
	"    for r in results:\n"
	"        head = \"%-16s %-36s %-10s %6d\" % (\n"
	"            r[\"op\"], shape_text(r)[:36], r[\"types\"][0].replace(\"c10::\", \"\")[:10], r[\"count\"])\n"
	"        if \"skipped\" in r:\n"
	"            print(\"%s  left out: %s\" % (head, r[\"skipped\"]))\n"
	"            continue\n"
	"        recorded = r[\"min_us\"] if r[\"collective\"] else r[\"median_us\"]\n"
	"        rates = \"\"\n"
	"        if \"gflops_recorded\" in r:\n"
	"            rates = \" %9.1f %9.1f\" % (r[\"gflops_recorded\"], r[\"gflops_replayed\"])\n"
	"        print(\"%s %11.1f %11.1f %6.2f%s\" % (head, recorded, r[\"replayed_us\"], r[\"ratio\"], rates))\n"
	"    for kind in (\"multiplications\", \"collectives\"):\n"
	"        t = total[kind]\n"
	"        if t[\"count\"]:\n"
	"            print(\"%s: %d in the record take %.3f ms; here %.3f ms: the record took %.2f times \"\n"
	"                  \"as long\" % (kind, t[\"count\"], t[\"recorded_ms\"], t[\"replayed_ms\"], t[\"ratio\"]))\n"
	"\n"
	"\n"
	"def sum_up(results, device):\n"
	"    name = torch.cuda.get_device_name(device) if device.type == \"cuda\" else (\n"
	"        \"CPU, %d threads\" % torch.get_num_threads())\n"
	"    total = {\"device\": name}\n"
	"    for kind, wanted in ((\"multiplications\", False), (\"collectives\", True)):\n"
	"        chosen = [r for r in results if r[\"collective\"] == wanted and \"skipped\" not in r]\n"
	"        recorded = sum(r[\"count\"] * (r[\"min_us\"] if wanted else r[\"median_us\"]) for r in chosen)\n"
	"        replayed = sum(r[\"count\"] * r[\"replayed_us\"] for r in chosen)\n"
	"        total[kind] = {\n"
	"            \"count\": sum(r[\"count\"] for r in chosen), \"recorded_ms\": recorded / 1e3,\n"
	"            \"replayed_ms\": replayed / 1e3, \"ratio\": recorded / replayed if replayed else 0.0}\n"
	"    return total\n"
	"\n"
	"\n"
	"def main():\n"
	"    parser = argparse.ArgumentParser(description=__doc__)\n"
	"    parser.add_argument(\"--device\", default=\"cuda\" if torch.cuda.is_available() else \"cpu\",\n"
	"                        help=\"cpu, cuda or cuda:N\")\n"
	"    parser.add_argument(\"--repeat\", type=int, default=20, help=\"measurements of each shape\")\n"
	"    parser.add_argument(\"--threads\", type=int, default=0, help=\"threads of a CPU\")\n"
	"    parser.add_argument(\"--json\", action=\"store_true\", help=\"print JSON\")\n"
	"    args = parser.parse_args()\n"
	"    if args.threads > 0:\n"
	"        torch.set_num_threads(args.threads)\n"
	"    device = torch.device(args.device)\n"
	"    if args.repeat < 1 or device.type not in (\"cpu\", \"cuda\"):\n"
	"        parser.error(\"expected --repeat of 1 or more, and cpu or cuda\")\n"
	"    if device.type == \"cuda\" and not torch.cuda.is_available():\n"
	"        parser.error(\"this machine has no CUDA device: --device cpu\")\n"
	"    world = int(os.environ.get(\"WORLD_SIZE\", \"1\"))\n"
	"    if device.type == \"cuda\" and device.index is None:\n"
	"        device = torch.device(\"cuda\", int(os.environ.get(\"LOCAL_RANK\", \"0\")))\n"
	"    if device.type == \"cuda\":\n"
	"        torch.cuda.set_device(device)\n"
	"    if world > 1:\n"
	"        torch.distributed.init_process_group(\"nccl\" if device.type == \"cuda\" else \"gloo\")\n"
	"    torch.manual_seed(0)\n"
	"    results = [run(entry, args, device, world) for entry in RECORD[\"entries\"]]\n"
	"    total = sum_up(results, device)\n"
	"    if int(os.environ.get(\"RANK\", \"0\")) == 0:\n"
	"        if args.json:\n"
	"            print(json.dumps({\"record\": RECORD[\"source\"], \"rank\": RECORD[\"rank\"],\n"
	"                              \"results\": results, \"total\": total}))\n"
	"        else:\n"
	"            print_table(results, total)\n"
	"    if world > 1:\n"
	"        torch.distributed.destroy_process_group()\n"
	"    return 0\n"
	"\n"
	"\n"
	"if __name__ == \"__main__\":\n"
	"    sys.exit(main())\n";
/* clang-format on */

/* NULL: out of memory. */
static json_t *entry_of(const struct opshape *shape)
{
	json_t *dims = json_loads(shape->dims, 0, NULL), *types = json_loads(shape->types, 0, NULL);
	json_t *strides = json_loads(shape->strides, 0, NULL);

	return json_pack("{ss so so so sb si si sf sf}", "op", shape->op, "dims", dims, "types",
			 types, "strides", strides, "collective", shape->collective, "group",
			 shape->group_size, "count", (int)shape->us.cnt, "median_us",
			 opshape_median_us(shape), "min_us", shape->us.data[0]);
}

static json_t *entries_of(const struct opshapes *shapes)
{
	json_t *entries = json_array();

	vec_foreach(shape, &shapes->shapes) {
		if (json_array_append_new(entries, entry_of(shape)) < 0) {
			json_decref(entries);
			return NULL;
		}
	}
	return entries;
}

int replayscript_append(struct str *out, const struct opshapes *shapes, const char *source)
{
	const size_t start = out->len;
	json_t *entries = entries_of(shapes);
	json_t *root = entries != NULL
			       ? json_pack("{ss si si ss so}", "source", source, "rank",
					   shapes->rank, "world", shapes->world, "where",
					   shapes->has_device ? "time of kernels"
							      : "time of operators on a CPU",
					   "entries", entries)
			       : NULL;
	char *text = root != NULL ? json_dumps(root, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9) |
							     JSON_INDENT(1))
				  : NULL;

	json_decref(root);
	if (text == NULL)
		return -ENOMEM;
	str_append(out, begin);
	/* The text is in a literal of Python, which an apostrophe could end. */
	for (const char *c = text; *c != '\0'; c++) {
		if (*c == '\'')
			str_append(out, "\\u0027");
		else
			str_append_char(out, *c);
	}
	str_append(out, end);
	free(text);
	return str_finish(out, start);
}
