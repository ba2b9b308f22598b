"""Categories of kernels: each name in exactly one, the most specific pattern decides."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.analyses.traces.kernel_categories import (
    KEMPNERFORGE,
    OTHER,
    Row,
    categorise,
    category,
    like_kempnerforge,
    table,
)

CATEGORIES = (
    *("matmul", "attention", "communication", "memory", "convolution", "normalisation", "optimizer", "embedding"),
    *("elementwise", OTHER),
)


@pytest.mark.parametrize("row", table(), ids=lambda row: row.example[:60])
def test_the_example_of_each_row_has_its_pattern_and_its_category(row: Row) -> None:
    assert row.length(row.example.lower()) > 0
    assert category(row.example) == row.category
    assert row.category in CATEGORIES


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long)", "communication"),
        ("ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("void multimem_all_reduce_kernel<__nv_bfloat16, 8>(void*)", "communication"),
        ("void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float>()", "normalisation"),
        ("void fbgemm_gpu::permute_1D_lengths<int>(int)", "embedding"),
        ("sm80_xmma_wgrad_implicit_gemm_tf32f32_nhwc", "convolution"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<float>>", "attention"),
        ("triton_poi_fused_addmm_gelu_4", "elementwise"),
        ("triton_red_fused_all_reduce_add_1", "elementwise"),
        ("triton_tem_fused_mm_8", "matmul"),
        ("split_embedding_backward_rowwise_adagrad_v5", "embedding"),
        ("__amd_rocclr_copyBuffer", "memory"),
        ("Cijk_Ailk_Bljk_SB_MT32x64x8", "matmul"),
        ("void softmax_blockwise_fwd<4>(float*)", OTHER),
        ("", OTHER),
    ],
)
def test_names_that_hold_each_others_words_are_told_apart(name: str, expected: str) -> None:
    assert category(name) == expected


def test_a_column_keeps_its_order_its_name_and_its_repeats() -> None:
    names = pl.Series("kernel", ["sgemm_q", None, "nccl_z", "sgemm_q", "?"])
    found = categorise(names)
    assert found.to_list() == ["matmul", OTHER, "communication", "matmul", OTHER]
    assert found.name == "kernel"
    assert categorise(names.clear()).to_list() == []


def test_every_category_is_in_one_of_the_four_rows_of_kempnerforge() -> None:
    rows = [like_kempnerforge(name) for name in CATEGORIES]
    assert set(rows) == set(KEMPNERFORGE)
    assert rows.count("Other kernels") == len(CATEGORIES) - 3
    assert like_kempnerforge("communication") == "Communication (NCCL)"
