/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work of a simulated worker: kernels, copies and collectives, with the names that
 * torch.profiler writes.
 */
#pragma once

#include "model/event.h"
#include "simulate/layout.h"

/* Streams of a device; numbered as in PyTorch jobs. */
#define STREAM_COMPUTE 7
#define STREAM_GROUP(kind) (20 + 4 * (int)(kind))
#define STREAM_PEER 48

/*
 * X(id, class, util, threads, operator, name). util: of its resource while it works; threads:
 * launched for the usual input; operator: the launching one.
 */
#define KERNEL_LIST(X)                                                                              \
	X(COPY_IN, MEMORY, 0.35, -1, "aten::copy_", "Memcpy HtoD (Pinned -> Device)")               \
	X(EMBED, COMPUTE, 0.70, 524288, "aten::embedding",                                          \
	  "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, "     \
	  "unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>" \
	  ", int, int, unsigned int, unsigned int, long)")                                          \
	X(NORM, COMPUTE, 0.80, 1048576, "aten::native_layer_norm",                                  \
	  "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, "    \
	  "float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*)")                         \
	X(GEMM, COMPUTE, 0.92, 50688, "aten::linear",                                               \
	  "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1_bias_"    \
	  "bf16_execute_segment_k_off_kernel__5x_cublas")                                           \
	X(ATTENTION, COMPUTE, 0.85, 65536, "aten::_flash_attention_forward",                        \
	  "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, "   \
	  "false, cutlass::bfloat16_t>, false, true, false>(pytorch_flash::Flash_fwd_params)")      \
	X(GELU, COMPUTE, 0.75, 2097152, "aten::gelu",                                               \
	  "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl("       \
	  "at::TensorIteratorBase&, at::native::GeluType)::{lambda()#1}, std::array<char*, 2ul> "   \
	  ">(int, std::array<char*, 2ul>)")                                                         \
	X(LOSS, COMPUTE, 0.80, 1048576, "aten::_log_softmax",                                       \
	  "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, "   \
	  "float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, "           \
	  "c10::BFloat16 const*, int)")                                                             \
	X(HEAD, COMPUTE, 0.93, 50688, "aten::linear",                                               \
	  "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x128x64_warpgroupsize2x1x1_execute_" \
	  "segment_k_off_kernel__5x_cublas")                                                        \
	X(GEMM_BACK, COMPUTE, 0.92, 50688, "autograd::engine::evaluate_function: AddmmBackward0",   \
	  "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize128x256x64_warpgroupsize2x1x1_execute_" \
	  "segment_k_off_kernel__5x_cublas")                                                        \
	X(ATTENTION_BACK, COMPUTE, 0.83, 65536,                                                     \
	  "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0",           \
	  "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_"      \
	  "traits<128, 64, 128, 8>, false, true>(pytorch_flash::Flash_bwd_params)")                 \
	X(GELU_BACK, COMPUTE, 0.75, 2097152, "autograd::engine::evaluate_function: GeluBackward0",  \
	  "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernel"    \
	  "Impl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#1}, std::array<char*, "   \
	  "3ul> >(int, std::array<char*, 3ul>)")                                                    \
	X(CHUNK_CAT, COMPUTE, 0.70, 1048576, "fsdp::chunk_cat",                                     \
	  "void at::native::detail::chunk_cat_cuda_kernel<float, c10::BFloat16>(c10::BFloat16**, "  \
	  "float*, long*, long*, long*, long, long, long, long, long, long)")                       \
	X(ADAM, COMPUTE, 0.72, 1048576, "aten::_fused_adamw_",                                      \
	  "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anony"    \
	  "mous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace"  \
	  ")::FusedAdamMathFunctor<float, 4, 1, false> >(int)")                                     \
	X(TP_REDUCE, COMM, 0.75, 16896, "c10d::allreduce_",                                         \
	  "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")             \
	X(DP_REDUCE, COMM, 0.75, 16896, "c10d::allreduce_",                                         \
	  "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")              \
	X(SCATTER, COMM, 0.75, 16896, "c10d::_reduce_scatter_base_",                                \
	  "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")          \
	X(GATHER, COMM, 0.75, 16896, "c10d::_allgather_base_",                                      \
	  "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)")                      \
	X(EXCHANGE, COMM, 0.75, 16896, "c10d::alltoall_base_",                                      \
	  "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")                               \
	X(PEER, COMM, 0.75, 16896, "c10d::send",                                                    \
	  "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")

enum kernel {
#define X(id, class, util, threads, op, name) KERNEL_##id,
	KERNEL_LIST(X)
#undef X
		KERNEL_CNT
};

struct kernel_text {
	uint8_t class; /* enum event_class */
	double util_frac;
	double threads; /* -1: a copy */
	const char *op, *name;
};

const struct kernel_text *kernel_text(enum kernel kernel);

/* The name of a kernel's collective in record_param_comms; NULL: none. */
const char *kernel_collective(enum kernel kernel);
