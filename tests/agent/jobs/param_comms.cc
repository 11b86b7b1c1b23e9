// SPDX-License-Identifier: Apache-2.0
// Queues collectives as torch's NCCL back end does: with a description beside the scope, which
// may end on another thread. Compiled by the test against the headers of the torch that it runs.
#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <torch/version.h>

#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

std::shared_ptr<torch::ParamCommsDebugInfo> describe(const char *group, int64_t elements)
{
	const int rank = 1, group_size = 8;
#if TORCH_VERSION_MAJOR >= 2 && TORCH_VERSION_MINOR >= 4
	auto info = std::make_shared<torch::ParamCommsDebugInfo>(
		std::make_tuple(std::string(group), std::string("what it is for")), rank,
		std::string("allreduce"), elements, elements, at::kHalf, std::vector<int64_t>(),
		std::vector<int64_t>(), 16, 2, group_size);
#if TORCH_VERSION_MINOR >= 12
	info->setSequenceInfo(42, false);
#endif
	return info;
#else
	(void)group;
	(void)group_size;
	return std::make_shared<torch::ParamCommsDebugInfo>(
		rank, std::string("allreduce"), (int)elements, (int)elements, at::kHalf,
		std::vector<int64_t>(), std::vector<int64_t>());
#endif
}

} // namespace

extern "C" void collective(const char *group, int elements, bool ends_elsewhere)
{
	c10::DebugInfoGuard guard(c10::DebugInfoKind::PARAM_COMMS_INFO, describe(group, elements));
	auto work = std::make_shared<at::RecordFunction>(at::RecordScope::USER_SCOPE);

	if (!work->isActive())
		return;
	work->_setAsync();
	work->before("nccl:all_reduce");
	if (ends_elsewhere)
		std::thread([work] { work->end(); }).join();
}
