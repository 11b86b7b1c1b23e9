/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/pythoncode.h"

#include <stdlib.h>
#include <string.h>

/* Packages and modules at the beginning of a path, in order of strcmp(). */
static const char *const libraries[] = {
	"PIL",
	"_collections_abc",
	"_pytest",
	"_weakrefset",
	"abc",
	"accelerate",
	"aiohttp",
	"albumentations",
	"apex",
	"argparse",
	"ast",
	"asyncio",
	"base64",
	"bitsandbytes",
	"boto3",
	"botocore",
	"bz2",
	"cloudpickle",
	"codecs",
	"collections",
	"colossalai",
	"concurrent",
	"configparser",
	"contextlib",
	"copy",
	"copyreg",
	"csv",
	"ctypes",
	"cupy",
	"cv2",
	"dataclasses",
	"datetime",
	"decimal",
	"deepspeed",
	"diffusers",
	"dill",
	"email",
	"encodings",
	"enum",
	"fairscale",
	"flash_attn",
	"flashinfer",
	"flax",
	"fnmatch",
	"fractions",
	"fsspec",
	"functools",
	"gc",
	"genericpath",
	"glob",
	"gym",
	"gymnasium",
	"gzip",
	"h5py",
	"hashlib",
	"heapq",
	"hmac",
	"horovod",
	"html",
	"http",
	"huggingface_hub",
	"hydra",
	"importlib",
	"inspect",
	"io",
	"jax",
	"joblib",
	"json",
	"keras",
	"lightning",
	"lightning_fabric",
	"linecache",
	"logging",
	"lzma",
	"matplotlib",
	"mlflow",
	"msgpack",
	"multiprocess",
	"multiprocessing",
	"numba",
	"numpy",
	"omegaconf",
	"optax",
	"os",
	"pandas",
	"pathlib",
	"peft",
	"perftracker",
	"pickle",
	"pkg_resources",
	"posixpath",
	"psutil",
	"pyarrow",
	"pytorch_lightning",
	"queue",
	"random",
	"ray",
	"re",
	"regex",
	"requests",
	"runpy",
	"s3fs",
	"safetensors",
	"scipy",
	"secrets",
	"selectors",
	"sentencepiece",
	"shutil",
	"signal",
	"site",
	"skimage",
	"sklearn",
	"socket",
	"socketserver",
	"soundfile",
	"sqlite3",
	"ssl",
	"stable_baselines3",
	"stat",
	"statistics",
	"string",
	"struct",
	"subprocess",
	"tarfile",
	"tempfile",
	"tensorboard",
	"tensorflow",
	"textwrap",
	"threading",
	"tiktoken",
	"timeit",
	"timm",
	"tokenizers",
	"torch",
	"torch_geometric",
	"torch_xla",
	"torchaudio",
	"torchdata",
	"torchmetrics",
	"torchrec",
	"torchtext",
	"torchvision",
	"tqdm",
	"traceback",
	"transformer_engine",
	"transformers",
	"triton",
	"trl",
	"types",
	"typing",
	"unittest",
	"urllib",
	"urllib3",
	"uuid",
	"vllm",
	"wandb",
	"warnings",
	"weakref",
	"webdataset",
	"xformers",
	"xml",
	"yaml",
	"zarr",
	"zipfile",
};

static int library_cmp(const void *name, const void *library)
{
	return strcmp(name, *(const char *const *)library);
}

/* The first part of a path: a package, or a module without ".py(LINE): NAME". */
static bool is_library(const char *path)
{
	size_t len = strcspn(path, "/(");
	char first[64];

	if (path[len] == '(' && len > 3 && memcmp(path + len - 3, ".py", 3) == 0)
		len -= 3;
	if (len >= sizeof(first))
		return false;
	memcpy(first, path, len);
	first[len] = '\0';
	return bsearch(first, libraries, ARRAY_SIZE(libraries), sizeof(*libraries), library_cmp) !=
	       NULL;
}

/* "/usr/lib/python3.11/x.py" where a reader kept the path. */
static bool is_below_library(const char *path)
{
	return strstr(path, "-packages/") != NULL || strstr(path, "/lib/python3") != NULL;
}

bool pythoncode_is_users(const char *function)
{
	/* "<built-in ...>", "<system call ...>", "<frozen ...>", "<string>(1): __init__". */
	return function[0] != '<' && strstr(function, ".py(") != NULL &&
	       !is_below_library(function) && !is_library(function);
}
