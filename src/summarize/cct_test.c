/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/cct.h"

#include "base/test_random.h"
#include "summarize/classify.h"
#include "summarize/test_trace.h"

static void assert_names(enum event_kind kind, const char *name, const char *canonical,
			 const char *display)
{
	struct str out = { 0 };

	funckey_canonical(kind, name, &out);
	assert_string_equal(str_borrow(&out), canonical);
	out.len = 0;
	if (out.data != NULL)
		out.data[0] = '\0';
	funckey_display(kind, name, &out);
	assert_string_equal(str_borrow(&out), display);
	str_done(&out);
}

static void addresses_are_left_out(void **state)
{
	(void)state;
	assert_names(KIND_PYTHON, "<built-in method run_backward of Engine object at 0x7f12ab>",
		     "<built-in method run_backward of Engine object>",
		     "<built-in method run_backward of Engine object>");
	assert_names(KIND_OPERATOR, "wait 0xdeadBEEF now", "wait  now", "wait  now");
	assert_names(KIND_OPERATOR, "ends at 0x", "ends at 0x", "ends at 0x");
}

static void sizes_in_a_name_are_no_addresses(void **state)
{
	(void)state;
	assert_names(KIND_KERNEL, "sm80_xmma_gemm_tilesize160x128x32",
		     "sm80_xmma_gemm_tilesize160x128x32", "sm80_xmma_gemm_tilesize160x128x32");
	assert_names(KIND_KERNEL, "gemm_320x64", "gemm_320x64", "gemm_320x64");
}

static void lines_are_shown_but_no_part_of_the_identity(void **state)
{
	(void)state;
	assert_names(KIND_PYTHON, "train.py(12): step", "train.py: step", "train.py(12): step");
	assert_names(KIND_PYTHON, "a(b)/c.py(3): <lambda>", "a(b)/c.py: <lambda>",
		     "a(b)/c.py(3): <lambda>");
	assert_names(KIND_PYTHON, "f(x): y", "f(x): y", "f(x): y");
}

static void modules_lose_their_instance_number_only(void **state)
{
	(void)state;
	assert_names(KIND_PYTHON, "nn.Module: Linear_3", "nn.Module: Linear", "nn.Module: Linear");
	assert_names(KIND_PYTHON, "nn.Module: Conv2d_10", "nn.Module: Conv2d", "nn.Module: Conv2d");
	assert_names(KIND_PYTHON, "nn.Module: Block2", "nn.Module: Block2", "nn.Module: Block2");
	assert_names(KIND_PYTHON, "Linear_3", "Linear_3", "Linear_3");
}

static void numbers_behind_a_hash_are_left_out(void **state)
{
	(void)state;
	assert_names(KIND_ANNOTATION, "ProfilerStep#12", "ProfilerStep", "ProfilerStep");
	assert_names(KIND_ANNOTATION, "Optimizer.step#SGD.step", "Optimizer.step#SGD.step",
		     "Optimizer.step#SGD.step");
	assert_names(KIND_ANNOTATION, "## forward ##", "## forward ##", "## forward ##");
}

static void kernels_lose_their_parameters_only(void **state)
{
	(void)state;
	assert_names(KIND_KERNEL, "void at::f<int (*)(int)>(float*, int)", "at::f<int (*)(int)>",
		     "at::f<int (*)(int)>");
	assert_names(KIND_KERNEL, "(anonymous namespace)::k", "(anonymous namespace)::k",
		     "(anonymous namespace)::k");
	assert_names(KIND_KERNEL, "(all)", "(all)", "(all)");
	assert_names(KIND_KERNEL, "unbalanced)", "unbalanced)", "unbalanced)");
	/* The memory kind of a copy is not a parameter list. */
	assert_names(KIND_GPU_MEMOP, "Memcpy HtoD (Pageable -> Device)",
		     "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)");
}

static void two_workers_agree_on_a_key_without_talking(void **state)
{
	struct cct a, b;
	uint32_t x, y;

	(void)state;
	assert_int_equal(cct_init(&a), 0);
	assert_int_equal(cct_init(&b), 0);
	x = cct_child_text(&a, CCT_ROOT, KIND_PYTHON, "main.py(3): main");
	x = cct_child_text(&a, x, KIND_PYTHON, "<method of object at 0x7f01>");
	assert_int_not_equal(cct_child_text(&b, CCT_ROOT, KIND_PYTHON, "other"), FRAME_NONE);
	y = cct_child_text(&b, CCT_ROOT, KIND_PYTHON, "main.py(4): main");
	y = cct_child_text(&b, y, KIND_PYTHON, "<method of object at 0x55>");
	assert_true(funckey_equal(a.nodes.data[x].key, b.nodes.data[y].key));
	/* Under another caller it is another function. */
	y = cct_child_text(&b, CCT_ROOT, KIND_PYTHON, "<method of object at 0x55>");
	assert_false(funckey_equal(a.nodes.data[x].key, b.nodes.data[y].key));
	cct_done(&a);
	cct_done(&b);
}

static void kinds_keep_functions_of_one_name_apart(void **state)
{
	struct cct cct;
	uint32_t op, python, again;

	(void)state;
	assert_int_equal(cct_init(&cct), 0);
	op = cct_child(&cct, CCT_ROOT, KIND_OPERATOR, 1, "add");
	python = cct_child(&cct, CCT_ROOT, KIND_PYTHON, 1, "add");
	again = cct_child_text(&cct, CCT_ROOT, KIND_OPERATOR, "add");
	assert_int_not_equal(op, python);
	assert_int_equal(op, again);
	assert_false(funckey_equal(cct.nodes.data[op].key, cct.nodes.data[python].key));
	cct_done(&cct);
}

static void a_key_is_written_as_32_digits(void **state)
{
	char hex[33];

	(void)state;
	funckey_hex((struct funckey){ 0xab, 1 }, hex);
	assert_string_equal(hex, "00000000000000ab0000000000000001");
}

struct row {
	enum event_kind kind;
	const char *name;
	bool leaf;
	enum classify_mode mode;
	enum event_class class;
};

static const struct row rows[] = {
	{ KIND_KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", true, CLASSIFY_DEVICE,
	  CLASS_COMM },
	{ KIND_KERNEL, "ncclKernel_SendRecv", true, CLASSIFY_DEVICE, CLASS_COMM },
	{ KIND_KERNEL, "void deep_ep::internode::dispatch", true, CLASSIFY_DEVICE, CLASS_COMM },
	{ KIND_KERNEL, "void vllm::cross_device_reduce_1stage", true, CLASSIFY_DEVICE, CLASS_COMM },
	{ KIND_KERNEL, "void at::native::reduce_kernel", true, CLASSIFY_DEVICE, CLASS_COMPUTE },
	{ KIND_KERNEL, "gemm", true, CLASSIFY_DEVICE, CLASS_COMPUTE },
	{ KIND_GPU_MEMOP, "Memset (Device)", true, CLASSIFY_DEVICE, CLASS_MEMORY },
	{ KIND_RUNTIME, "cudaMalloc", true, CLASSIFY_DEVICE, CLASS_MEMORY },
	{ KIND_RUNTIME, "cudaFreeHost", true, CLASSIFY_DEVICE, CLASS_MEMORY },
	{ KIND_RUNTIME, "cuMemHostUnregister", true, CLASSIFY_DEVICE, CLASS_MEMORY },
	{ KIND_RUNTIME, "hipMalloc", true, CLASSIFY_DEVICE, CLASS_MEMORY },
	{ KIND_RUNTIME, "cudaLaunchKernel", true, CLASSIFY_DEVICE, CLASS_HOST },
	{ KIND_RUNTIME, "cudaDeviceSynchronize", true, CLASSIFY_DEVICE, CLASS_HOST },
	{ KIND_OPERATOR, "aten::mm", true, CLASSIFY_DEVICE, CLASS_HOST },
	{ KIND_OPERATOR, "aten::mm", true, CLASSIFY_CPU_ONLY, CLASS_COMPUTE },
	{ KIND_OPERATOR, "aten::linear", false, CLASSIFY_CPU_ONLY, CLASS_HOST },
	{ KIND_OPERATOR, "aten::view", true, CLASSIFY_CPU_ONLY, CLASS_HOST },
	{ KIND_OPERATOR, "aten::copy_", true, CLASSIFY_CPU_ONLY, CLASS_MEMORY },
	{ KIND_OPERATOR, "aten::empty", true, CLASSIFY_CPU_ONLY, CLASS_MEMORY },
	{ KIND_OPERATOR, "mylib::op", true, CLASSIFY_CPU_ONLY, CLASS_COMPUTE },
	{ KIND_OPERATOR, "record_param_comms", true, CLASSIFY_CPU_ONLY, CLASS_HOST },
	{ KIND_OPERATOR, "autograd::engine::evaluate_function: X", true, CLASSIFY_CPU_ONLY,
	  CLASS_HOST },
	{ KIND_OPERATOR, "c10d::allreduce_", false, CLASSIFY_CPU_ONLY, CLASS_COMM },
	{ KIND_ANNOTATION, "gloo:all_reduce", true, CLASSIFY_CPU_ONLY, CLASS_COMM },
	{ KIND_ANNOTATION, "nccl:all_reduce", true, CLASSIFY_DEVICE, CLASS_HOST },
	{ KIND_ANNOTATION, "forward", true, CLASSIFY_CPU_ONLY, CLASS_HOST },
	{ KIND_PYTHON, "nccl.py(1): f", true, CLASSIFY_DEVICE, CLASS_HOST },
	{ KIND_PYTHON, "<built-in method wait of pybind11_builtins.pybind11_detail object>", true,
	  CLASSIFY_CPU_ONLY, CLASS_COMM },
	{ KIND_PYTHON, "<built-in method wait of pybind11_builtins.pybind11_detail object>", true,
	  CLASSIFY_DEVICE, CLASS_HOST },
	{ KIND_PYTHON, "<built-in method wait of _thread.lock object>", true, CLASSIFY_CPU_ONLY,
	  CLASS_HOST },
};

static void every_row_of_the_class_table_holds(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];

		if (classify_event(r->kind, r->name, r->leaf, r->mode) != r->class)
			fail_msg("%s", r->name);
	}
}

/* Names of AMD's runtime and libraries. */
static void hip_calls_are_classified_as_those_of_cuda(void **state)
{
	static const char *const pairs[][2] = {
		{ "hipMallocAsync", "cudaMallocAsync" },
		{ "hipMallocManaged", "cudaMallocManaged" },
		{ "hipExtMallocWithFlags", "cudaMalloc" },
		{ "hipFreeAsync", "cudaFreeAsync" },
		{ "hipHostMalloc", "cudaMallocHost" },
		{ "hipHostAlloc", "cudaHostAlloc" },
		{ "hipHostFree", "cudaFreeHost" },
		{ "hipFreeHost", "cudaFreeHost" },
		{ "hipHostRegister", "cudaHostRegister" },
		{ "hipHostUnregister", "cudaHostUnregister" },
		{ "hipMemAllocPitch", "cuMemAllocPitch" },
		{ "hipMemCreate", "cuMemCreate" },
		{ "hipMemMap", "cuMemMap" },
		{ "hipMemUnmap", "cuMemUnmap" },
		{ "hipMemRelease", "cuMemRelease" },
		{ "hipMemSetAccess", "cuMemSetAccess" },
		{ "hipMemcpy", "cudaMemcpy" },
		{ "hipMemcpyWithStream", "cudaMemcpyAsync" },
		{ "hipMemcpyPeerAsync", "cudaMemcpyPeerAsync" },
		{ "hipMemset", "cudaMemset" },
		{ "hipMemsetAsync", "cudaMemsetAsync" },
		{ "hipStreamSynchronize", "cudaStreamSynchronize" },
		{ "hipEventSynchronize", "cudaEventSynchronize" },
		{ "hipStreamWaitEvent", "cudaStreamWaitEvent" },
		{ "hipDeviceSynchronize", "cudaDeviceSynchronize" },
		{ "hipExtModuleLaunchKernel", "cuLaunchKernel" },
		{ "hipGraphLaunch", "cudaGraphLaunch" },
		{ "hipMemGetInfo", "cudaMemGetInfo" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (classify_event(KIND_RUNTIME, pairs[i][0], true, CLASSIFY_DEVICE) !=
		    classify_event(KIND_RUNTIME, pairs[i][1], true, CLASSIFY_DEVICE))
			fail_msg("%s is not as %s", pairs[i][0], pairs[i][1]);
	}
}

static void kernels_of_amds_libraries_have_their_classes(void **state)
{
	static const struct {
		const char *name;
		enum event_class class;
	} kernels[] = {
		{ "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", CLASS_COMM },
		{ "ncclDevKernel_Generic_4", CLASS_COMM },
		{ "rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)", CLASS_COMM },
		{ "void mscclKernel_Sum_float_Simple_false", CLASS_COMM },
		{ "Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1",
		  CLASS_COMPUTE },
		/* Split along K: adds up partial results, does not communicate. */
		{ "Cijk_SB_PostGSU3_VW4", CLASS_COMPUTE },
		{ "void rocblas_gemv_kernel<256>", CLASS_COMPUTE },
		{ "miopenSp3AsmConv_v30_3_1_gfx9_fp32", CLASS_COMPUTE },
		{ "__amd_rocclr_copyBuffer", CLASS_MEMORY },
		{ "__amd_rocclr_copyBufferRectAligned", CLASS_MEMORY },
		{ "__amd_rocclr_fillBufferAligned.kd", CLASS_MEMORY },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		if (classify_event(KIND_KERNEL, kernels[i].name, true, CLASSIFY_DEVICE) !=
		    kernels[i].class)
			fail_msg("%s", kernels[i].name);
	}
	assert_true(classify_is_collective(KIND_KERNEL, "rcclGenericKernel<1, false>"));
	assert_false(classify_is_collective(KIND_KERNEL, "__amd_rocclr_copyBuffer"));
}

static void executions_of_a_communication_library_are_collectives(void **state)
{
	(void)state;
	assert_true(classify_is_collective(KIND_KERNEL, "ncclDevKernel_AllGather"));
	assert_true(classify_is_collective(KIND_ANNOTATION, "gloo:barrier"));
	assert_false(classify_is_collective(KIND_ANNOTATION, "nccl:all_reduce"));
	assert_false(classify_is_collective(KIND_OPERATOR, "c10d::allreduce_"));
	assert_false(classify_is_collective(KIND_GPU_ANNOTATION, "gloo:barrier"));
}

/* The order of requests is cached, and must not affect a result. */
static void a_child_is_the_same_whatever_was_asked_before(void **state)
{
	static const char *const names[] = { "f", "g", "h", "aten::mm" };
	static const enum event_kind kinds[] = { KIND_PYTHON, KIND_OPERATOR };
	uint64_t r = 20261121;
	struct cct learned, twin;

	(void)state;
	assert_int_equal(cct_init(&learned), 0);
	assert_int_equal(cct_init(&twin), 0);
	for (int i = 0; i < 20000; i++) {
		uint32_t name = (uint32_t)test_below(&r, 4);
		enum event_kind kind = kinds[test_below(&r, 2)];
		uint32_t parent = CCT_ROOT;

		if (twin.nodes.cnt > 0 && test_below(&r, 4) > 0)
			parent = (uint32_t)test_below(&r, (int64_t)MIN(twin.nodes.cnt, (size_t)40));
		assert_int_equal(cct_child(&learned, parent, kind, name, names[name]),
				 cct_child_text(&twin, parent, kind, names[name]));
	}
	assert_int_equal(learned.nodes.cnt, twin.nodes.cnt);
	cct_done(&learned);
	cct_done(&twin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_left_out),
		cmocka_unit_test(sizes_in_a_name_are_no_addresses),
		cmocka_unit_test(lines_are_shown_but_no_part_of_the_identity),
		cmocka_unit_test(modules_lose_their_instance_number_only),
		cmocka_unit_test(numbers_behind_a_hash_are_left_out),
		cmocka_unit_test(kernels_lose_their_parameters_only),
		cmocka_unit_test(two_workers_agree_on_a_key_without_talking),
		cmocka_unit_test(kinds_keep_functions_of_one_name_apart),
		cmocka_unit_test(a_key_is_written_as_32_digits),
		cmocka_unit_test(a_child_is_the_same_whatever_was_asked_before),
		cmocka_unit_test(every_row_of_the_class_table_holds),
		cmocka_unit_test(hip_calls_are_classified_as_those_of_cuda),
		cmocka_unit_test(kernels_of_amds_libraries_have_their_classes),
		cmocka_unit_test(executions_of_a_communication_library_are_collectives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
