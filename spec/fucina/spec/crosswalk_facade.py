"""Rows of the crosswalk for the chapters facade, policy and autograd: documented name, Python name, clause ids.

Rows of what the documents do not have start with the Python name.
"""

from __future__ import annotations

__all__ = ["ADDED", "INSPECTION", "NAMED", "OWNERSHIP", "POLICY", "RAW_NAMED", "RNG", "SCOPES"]

OWNERSHIP = (
    "variable Tensor.variable FACADE-NEW-1 AUTOGRAD-LEAF-1",
    "constant Tensor.constant FACADE-NEW-1",
    "fromSlice Tensor.from_slice FACADE-NEW-2 FACADE-NEW-3",
    "fromTensor Tensor.from_tensor FACADE-NEW-1",
    "empty Tensor.empty FACADE-NEW-4",
    "zeros Tensor.zeros FACADE-NEW-4",
    "ones Tensor.ones FACADE-NEW-4",
    "full Tensor.full FACADE-NEW-4",
    "scalar Tensor.scalar FACADE-NEW-4",
    "grad Tensor.grad AUTOGRAD-GRAD-1",
    "gradView Tensor.grad_view AUTOGRAD-GRAD-1",
    "deinit Tensor.deinit FACADE-OWN-1 FACADE-OWN-2",
    "scale Tensor.scale POLICY-SCALAR-1 AUTOGRAD-VJP-1",
    "dataConst Tensor.data_const FACADE-LOOK-1",
    "reshape Tensor.reshape FACADE-VIEW-1",
    "broadcastTo Tensor.broadcast_to FACADE-VIEW-3",
    "narrow Tensor.narrow FACADE-VIEW-2",
    "backward Tensor.backward AUTOGRAD-BACK-1 AUTOGRAD-BACK-2",
)
"""6.2."""

SCOPES = (
    "nllLoss Tensor.nll_loss POLICY-NLL-1 AUTOGRAD-SCOPE-1",
    "l2Normalize Tensor.l2_normalize POLICY-NORM-1 AUTOGRAD-SCOPE-1",
    "cosineSimilarity Tensor.cosine_similarity POLICY-COSINE-1 AUTOGRAD-SCOPE-1",
    "customVjp custom_vjp AUTOGRAD-CUSTOM-1",
    "takeAddNoGrad Tensor.take_add_no_grad POLICY-TAKE-1",
    "takeScaleNoGrad Tensor.take_scale_no_grad POLICY-TAKE-1",
    "scope_owned Tensor.scope_owned FACADE-OWN-2",
    "variableFromSlice Tensor.variable_from_slice FACADE-NEW-2 AUTOGRAD-LEAF-1",
    "mul Tensor.mul POLICY-ARITH-1 AUTOGRAD-VJP-1",
    "sumAll Tensor.sum_all POLICY-SUM-1 AUTOGRAD-VJP-2",
    "zeroGrad Tensor.zero_grad AUTOGRAD-GRAD-1 AUTOGRAD-BACK-2",
    "topK Tensor.top_k POLICY-TOPK-1",
    "sort Tensor.sort POLICY-SORT-1",
    "argmax Tensor.argmax POLICY-ARGMAX-1",
    "argsort Tensor.argsort POLICY-SORT-1",
)
"""6.3, beside the scopes themselves."""

RNG = ("dropout Tensor.dropout POLICY-DROPOUT-1 AUTOGRAD-VJP-4",)
"""6.8."""

POLICY = (
    "Tensor Tensor FACADE-TYPE-1 POLICY-BRANCH-1",
    "fromSlice Tensor.from_slice FACADE-NEW-2 FACADE-NEW-3",
    "dataConst Tensor.data_const FACADE-LOOK-1",
    "to Tensor.to POLICY-TO-1 AUTOGRAD-VJP-3",
    "add Tensor.add POLICY-TAGS-1 POLICY-ARITH-1 POLICY-MIXED-1",
    "sum Tensor.sum POLICY-SUM-1 POLICY-RESULT-1",
    "argmax Tensor.argmax POLICY-ARGMAX-1",
)
"""8.3."""

NAMED = (
    "leakyRelu Tensor.leaky_relu",
    "clamp Tensor.clamp",
    "where Tensor.where",
    "maskedFill Tensor.masked_fill",
    "gated Tensor.gated",
    "splitGated Tensor.split_gated",
    "max Tensor.max",
    "min Tensor.min",
    "compare Tensor.compare",
    "compareScalar Tensor.compare_scalar",
    "softmax Tensor.softmax",
    "logSoftmax Tensor.log_softmax",
    "logsumexp Tensor.logsumexp",
    "prod Tensor.prod",
    "varAxis Tensor.var_axis",
    "maxAxis Tensor.max_axis",
    "minAxis Tensor.min_axis",
    "rmsNorm Tensor.rms_norm",
    "layerNorm Tensor.layer_norm",
    "bmm Tensor.bmm",
    "einsum Tensor.einsum",
    "pad Tensor.pad",
)
"""8.3: examples of a class of operations, which other chapters of the documentation define."""

RAW_NAMED = (
    "gluRank ExecContext.glu",
    "splitSwiGluAxisRank ExecContext.split_swi_glu",
    "conv1dAxisRank ExecContext.conv1d",
    "conv2dBackwardInput ExecContext.conv2d_backward_input",
    "dropoutBackward ExecContext.dropout_backward",
    "splitSwiGluBackwardAxisRank ExecContext.split_swi_glu_backward",
)
"""6.4: examples of the grammar of names."""

INSPECTION = ("asRawTensor Tensor.as_raw_tensor FACADE-RAW-1",)
"""8.6."""

ADDED = (
    "Tensor.dtype FACADE-TYPE-1",
    "Tensor.rank FACADE-TYPE-1",
    "Tensor.axis_tags FACADE-TYPE-1",
    "Tensor.from_borrowed_slice FACADE-NEW-2",
    "Tensor.from_borrowed_const_slice FACADE-NEW-2",
    "Tensor.empty_like FACADE-NEW-4",
    "Tensor.zeros_like FACADE-NEW-4",
    "Tensor.ones_like FACADE-NEW-4",
    "Tensor.full_like FACADE-NEW-4",
    "Tensor.arange FACADE-NEW-5",
    "Tensor.linspace FACADE-NEW-5",
    "Tensor.eye FACADE-NEW-5",
    "Tensor.one_hot FACADE-NEW-6",
    "Tensor.rand FACADE-NEW-7",
    "Tensor.uniform FACADE-NEW-7",
    "Tensor.randn FACADE-NEW-7",
    "Tensor.normal FACADE-NEW-7",
    "Tensor.gumbel FACADE-NEW-7",
    "Tensor.bernoulli FACADE-NEW-7",
    "Tensor.randint FACADE-NEW-7",
    "Tensor.randperm FACADE-NEW-7",
    "Tensor.from_blocks FACADE-NEW-8",
    "Tensor.from_borrowed_blocks FACADE-NEW-8",
    "Tensor.shape FACADE-LOOK-1",
    "Tensor.dim FACADE-LOOK-1",
    "Tensor.data FACADE-LOOK-1",
    "Tensor.item FACADE-LOOK-1 FACADE-NEW-3",
    "Tensor.requires_grad AUTOGRAD-TRACK-1 AUTOGRAD-LEAF-1",
    "Tensor.flatten FACADE-VIEW-1",
    "Tensor.contiguous FACADE-VIEW-1",
    "Tensor.permute FACADE-VIEW-2",
    "Tensor.transpose FACADE-VIEW-2",
    "Tensor.split FACADE-VIEW-4",
    "Tensor.merge FACADE-VIEW-4",
    "Tensor.sub POLICY-ARITH-1 AUTOGRAD-VJP-1",
    "Tensor.div POLICY-ARITH-1 AUTOGRAD-VJP-1",
    "Tensor.add_scalar POLICY-SCALAR-1 AUTOGRAD-VJP-1",
    "Tensor.mean POLICY-MEAN-1 AUTOGRAD-VJP-2",
    "Tensor.get_rows POLICY-ROWS-1 AUTOGRAD-VJP-5",
    "Tensor.dot POLICY-DOT-1 AUTOGRAD-VJP-6",
    "Selection.values FACADE-OWN-4",
    "Selection.indices FACADE-OWN-4",
    "Selection.deinit FACADE-OWN-4",
    "ExecContext.no_grad AUTOGRAD-NOGRAD-1",
    "ExecContext.grad_enabled AUTOGRAD-NOGRAD-1",
)
