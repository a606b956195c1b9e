"""Cases of what networks are made of: convolution, pooling, sizes, normalization, attention, losses; and of
creation."""
from __future__ import annotations

from tests.tensor.operators.cases import BFLOAT16, Case, In

IMAGE, CASES = In((2, 4, 6, 7)), list[Case]()


def add(name: str, ours: str, *inputs: In, **options: object) -> None:
  CASES.append(Case(name, ours, inputs, **options))  # type: ignore[arg-type]  # the fields' own types


# ---- convolution
for options, shape, weights in [
    ("", (2, 3, 5, 6), (4, 3, 3, 2)), ("stride=2", (1, 2, 6, 5), (3, 2, 3, 3)), ("padding=1", (1, 2, 4, 5),
                                                                                 (3, 2, 3, 3)),
    ("stride=(2, 1), padding=(1, 0)", (1, 2, 6, 5), (2, 2, 3, 3)), ("dilation=2", (1, 2, 7, 6), (2, 2, 3, 2)),
    ("dilation=(1, 2), padding=2", (1, 2, 5, 5), (2, 2, 3, 2)), ("groups=2", (2, 4, 4, 4), (6, 2, 2, 2)),
    ("groups=4, padding=1", (1, 4, 4, 4), (4, 1, 3, 3)), ("padding='same'", (1, 2, 5, 4), (2, 2, 3, 2)),
    ("padding='valid'", (1, 2, 5, 4), (2, 2, 3, 2)), ("stride=3, padding=1, dilation=2", (1, 1, 9, 8), (1, 1, 3, 3)),
    ("", (2, 3, 4, 4), (5, 3, 1, 1)), ("stride=2", (3, 5, 5), (2, 3, 3, 3))]:
  add(f"conv2d {shape} {weights} {options}", f"F.conv2d(a, b{', ' + options if options else ''})", In(shape),
      In(weights))
add("conv2d with bias", "F.conv2d(a, b, c, padding=1)", In((2, 3, 4, 5)), In((2, 3, 3, 3)), In((2,)))
add("conv2d by keywords", "F.conv2d(a, weight=b, bias=c, stride=1, padding=0, dilation=1, groups=1)", In((1, 2, 4, 4)),
    In((3, 2, 2, 2)), In((3,)))
for kind in ("float16", BFLOAT16, "float64"):
  add(f"conv2d of {kind}", "F.conv2d(a, b)", In((1, 2, 4, 4), kind), In((2, 2, 2, 2), kind),
      **({"rtol": 3e-2, "atol": 3e-2, "because": "torch adds in 16 bits"} if kind != "float64" else {}))
add("conv2d padded on sides", "a.conv2d(b, padding=(1, 0, 2, 1))", In((1, 2, 4, 5)), In((2, 2, 2, 2)),
    theirs="F.conv2d(F.pad(a, (1, 0, 2, 1)), b)")
for options in ("", "stride=2, padding=1", "dilation=2", "groups=2", "padding='same'"):
  add(f"conv1d {options}", f"F.conv1d(a, b{', ' + options if options else ''})", In((2, 4, 7)),
      In((4, 2 if "groups" in options else 4, 3)))
for options in ("", "stride=2, padding=1", "groups=2, dilation=(1, 2, 1)"):
  add(f"conv3d {options}", f"F.conv3d(a, b{', ' + options if options else ''})", In((1, 2, 4, 4, 3)),
      In((2, 1 if "groups" in options else 2, 2, 2, 2)))
for options, weights in [("", (3, 2, 3, 2)), ("stride=2", (3, 2, 3, 3)), ("padding=1", (3, 2, 3, 3)),
                         ("stride=2, padding=1, output_padding=1", (3, 2, 3, 3)), ("dilation=2", (3, 2, 2, 3)),
                         ("stride=(1, 2), output_padding=(0, 1)", (3, 2, 2, 2)), ("padding=2", (3, 2, 4, 3))]:
  add(f"conv_transpose2d {options}", f"F.conv_transpose2d(a, b{', ' + options if options else ''})", In((2, 3, 4, 3)),
      In(weights))
add("conv_transpose2d in groups", "F.conv_transpose2d(a, b, c, groups=2, stride=2)", In((1, 4, 3, 3)),
    In((4, 2, 2, 2)), In((4,)))
add("conv_transpose1d", "F.conv_transpose1d(a, b, stride=2, padding=1)", In((2, 3, 5)), In((3, 2, 4)))
add("conv_transpose3d", "F.conv_transpose3d(a, b, stride=2)", In((1, 2, 2, 2, 3)), In((2, 1, 2, 2, 2)))
add("winograd", "a.conv2d(b, padding=1, winograd=True)", In((1, 2, 6, 5)), In((3, 2, 3, 3)),
    theirs="F.conv2d(a, b, padding=1)",
    rtol=1e-4, atol=1e-4, because="the transforms round")
add("winograd in groups", "a.conv2d(b, groups=2, winograd=True)", In((1, 4, 8, 6)), In((2, 2, 3, 3)),
    theirs="F.conv2d(a, b, groups=2)",
    rtol=1e-4, atol=1e-4, because="the transforms round")

# ---- pooling
for options in ("2", "kernel_size=3, stride=2", "(2, 3)", "3, 1, padding=1", "2, stride=1, dilation=2",
                "3, 2, ceil_mode=True",
                "(3, 2), (2, 3), padding=(1, 0), ceil_mode=True"):
  add(f"max_pool2d {options}", f"F.max_pool2d(a, {options})", IMAGE)
  add(f"max_pool2d with indices {options}", f"F.max_pool2d(a, {options}, return_indices=True)", IMAGE, loose="int",
      backward=False)
for options in ("2", "3, 2, padding=1", "2, ceil_mode=True"):
  add(f"max_pool1d {options}", f"F.max_pool1d(a, {options})", In((2, 3, 7)))
add("max_pool2d padded on sides", "a.max_pool2d(3, 2, padding=(0, 1, 1, 0))", IMAGE,
    theirs="F.max_pool2d(F.pad(a, (0, 1, 1, 0), value=-inf), 3, 2)")
add("avg_pool2d padded on sides", "a.avg_pool2d(3, 2, padding=(0, 1, 1, 0))", IMAGE,
    theirs="F.avg_pool2d(F.pad(a, (0, 1, 1, 0)), 3, 2)")
add("max_pool3d", "F.max_pool3d(a, 2, stride=1)", In((1, 2, 3, 4, 3)))
add("max_pool2d of padding only", "F.max_pool2d(a, 2, 2, padding=1)", In((1, 1, 3, 3), low=-5, high=-1))
add("max_pool2d with NaN", "F.max_pool2d(a, 2, return_indices=True)",
    In((1, 2, 2, 4), values=(*([1.0] * 5), float("nan"), *([2.0] * 10))),
    loose="int", backward=False)
add("max_pool2d of float16", "F.max_pool2d(a, 2)", In((1, 2, 4, 4), "float16"))
for options in ("2", "kernel_size=3, stride=2", "(2, 3)", "3, 2, padding=1", "3, 2, padding=1, count_include_pad=False",
                "3, 2, ceil_mode=True", "3, 2, padding=1, ceil_mode=True",
                "3, 2, padding=1, ceil_mode=True, count_include_pad=False",
                "2, divisor_override=3"):
  add(f"avg_pool2d {options}", f"F.avg_pool2d(a, {options})", IMAGE)
add("avg_pool1d", "F.avg_pool1d(a, 3, stride=2, padding=1), F.avg_pool1d(a, 2, ceil_mode=True)", In((2, 3, 7)))
add("avg_pool3d", "F.avg_pool3d(a, 2, stride=1)", In((1, 2, 3, 4, 3)))
add("lp_pool", "F.lp_pool2d(a, 2, 2), F.lp_pool1d(a[0], 3, kernel_size=2, stride=1)", In((1, 2, 4, 4), low=.1))
for size in ("1", "(2, 3)", "(3, None)", "(6, 7)", "4"):
  add(f"adaptive_avg_pool2d {size}", f"F.adaptive_avg_pool2d(a, {size})", IMAGE)
for size in ("1", "(2, 3)", "(4, None)"): add(f"adaptive_max_pool2d {size}", f"F.adaptive_max_pool2d(a, {size})", IMAGE)
add("adaptive pools of one axis", "F.adaptive_avg_pool1d(a, 3), F.adaptive_max_pool1d(a, output_size=2)", In((2, 3, 7)))
add("adaptive pools of three axes", "F.adaptive_avg_pool3d(a, 2), F.adaptive_max_pool3d(a, 1)", In((1, 2, 3, 4, 2)))
add("max_unpool2d", "F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2)", In((1, 2, 4, 6)))
add("max_unpool2d to a size", "F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2, output_size=(5, 7))",
    In((1, 2, 5, 7)))
add("max_unpool1d", "F.max_unpool1d(*F.max_pool1d(a, 2, 2, return_indices=True), 2, 2)", In((1, 2, 6)))

# ---- sizes
for options in ("size=(4, 9)", "size=5", "scale_factor=2", "scale_factor=(0.5, 1.5)",
                "size=(4, 9), mode='nearest-exact'",
                "size=(4, 9), mode='bilinear'", "size=(9, 4), mode='bilinear', align_corners=True",
                "scale_factor=2, mode='bilinear'", "scale_factor=(0.6, 1.7), mode='bilinear'",
                "scale_factor=1.3, mode='bilinear', recompute_scale_factor=True", "size=(5, 8), mode='bicubic'",
                "size=(3, 9), mode='bicubic', align_corners=True", "size=(3, 2), mode='area'",
                "size=(1, 1), mode='bilinear'"):
  add(f"interpolate {options}", f"F.interpolate(a, {options})", In((1, 2, 5, 6)), rtol=1e-4, atol=1e-5,
      because="positions are computed in float32, in another order")
add("interpolate lines", "F.interpolate(a, size=7, mode='linear'), F.interpolate(a, size=3)", In((1, 2, 5)))
add("interpolate volumes", "F.interpolate(a, scale_factor=2, mode='trilinear')", In((1, 1, 2, 3, 2)))

# ---- normalization
W4, B4 = In((4,), low=.5, high=1.5), In((4,))
add("layer_norm", "F.layer_norm(a, (7,)), F.layer_norm(a, (6, 7)), F.layer_norm(a, [7], eps=0.1)", IMAGE, atol=2e-5,
    because="differences of nearly equal numbers")
add("layer_norm with weights", "F.layer_norm(a, (4,), b, c)", In((3, 4)), W4, B4, atol=2e-5, because="the same")
add("layernorm", "a.layernorm()", In((3, 4)), theirs="F.layer_norm(a, (4,))", atol=2e-5, because="the same")
add("rms_norm", "F.rms_norm(a, (4,)), F.rms_norm(a, (4,), weight=b, eps=1e-3)", In((3, 4)), W4)
add("batch_norm", "F.batch_norm(a, b, c)", IMAGE, In((4,), grad=False), In((4,), low=.5, grad=False))
add("batch_norm with weights", "F.batch_norm(a, b, c, weight=d, bias=e)", In((3, 4)), In((4,), grad=False),
    In((4,), low=.5, grad=False), W4, B4)
add("batch_norm in training", "F.batch_norm(a, b, c, d, e, training=True, momentum=0.3), b, c", IMAGE,
    In((4,), grad=False),
    In((4,), low=.5, grad=False), W4, B4, atol=2e-5, because="the same")
add("batch_norm without statistics", "F.batch_norm(a, None, None, training=True)", In((5, 4)), atol=5e-5,
    because="the same")
add("batchnorm", "a.batchnorm(d, e, b, (c + 1e-5).rsqrt())", IMAGE, In((4,), grad=False), In((4,), low=.5, grad=False),
    W4, B4,
    theirs="F.batch_norm(a, b, c, d, e)")
add("instance_norm", "F.instance_norm(a), F.instance_norm(a, weight=b, bias=c)", IMAGE, W4, B4, atol=2e-5,
    because="the same")
add("group_norm", "F.group_norm(a, 2), F.group_norm(a, num_groups=4, weight=b, bias=c)", IMAGE, W4, B4, atol=2e-5,
    because="the same")
add("local_response_norm", "F.local_response_norm(a, 3), F.local_response_norm(a, 2, alpha=0.1, beta=0.5, k=2.0)",
    In((1, 4, 3, 2)))

# ---- attention
Q, K, V = In((2, 3, 4)), In((2, 5, 4)), In((2, 5, 2))
add("attention", "F.scaled_dot_product_attention(a, b, c)", Q, K, V)
add("attention is_causal", "F.scaled_dot_product_attention(a, b, c, is_causal=True)", Q, K, V)
add("attention with a mask", "F.scaled_dot_product_attention(a, b, c, attn_mask=d)", Q, K, V,
    In((3, 5), "bool", values=(True, False, True, True, False, *([True] * 5), False, False, True, False, False)))
add("attention with a float mask", "F.scaled_dot_product_attention(a, b, c, attn_mask=d, scale=0.3)", Q, K, V,
    In((3, 5)))
add("attention of heads", "F.scaled_dot_product_attention(a, b, b, enable_gqa=True)", In((1, 4, 3, 2)),
    In((1, 2, 3, 2)))

# ---- losses
CLASSES, LABELS = In((4, 3)), In((4,), "int64", values=(0, 2, 1, 2))
for how in ("mean", "sum", "none"):
  add(f"cross_entropy {how}", f"F.cross_entropy(a, b, reduction='{how}')", CLASSES, LABELS)
  add(f"nll_loss {how}", f"F.nll_loss(a, b, reduction='{how}')", CLASSES, LABELS)
  add(f"cross_entropy of shares {how}", f"F.cross_entropy(a, b, reduction='{how}')", CLASSES, In((4, 3), low=0, high=1))
  for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss",
               "binary_cross_entropy_with_logits"):
    add(f"{name} {how}", f"F.{name}(a, b, reduction='{how}')", CLASSES,
        In((4, 3), low=0, high=1, grad=name != "soft_margin_loss"))
add("cross_entropy with options", "F.cross_entropy(a, b, weight=c, ignore_index=1, label_smoothing=0.1)", CLASSES,
    LABELS,
    In((3,), low=.5, grad=False))
add("cross_entropy smoothed", "F.cross_entropy(a, b, label_smoothing=0.3), F.cross_entropy(a, c, label_smoothing=0.2)",
    CLASSES,
    LABELS, In((4, 3), low=0, high=1))
add("cross_entropy ignores", "F.cross_entropy(a, b, ignore_index=2)", CLASSES, LABELS)
add("cross_entropy weights shares", "F.cross_entropy(a, b, weight=c)", CLASSES, In((4, 3), low=0, high=1),
    In((3,), low=.5, grad=False))
add("cross_entropy of images", "F.cross_entropy(a, b)", In((2, 3, 2, 2)), In((2, 2, 2), "int64", 0, 3))
add("cross_entropy of one", "F.cross_entropy(a, b)", In((3,)), In((), "int64", 0, 3))
add("nll_loss with weights", "F.nll_loss(a, b, weight=c, ignore_index=0)", CLASSES, LABELS,
    In((3,), low=.5, grad=False))
add("sparse_categorical_crossentropy", "a.sparse_categorical_crossentropy(b, label_smoothing=0.1)", CLASSES, LABELS,
    theirs="F.cross_entropy(a, b, label_smoothing=0.1)")
UNIT, OTHER = In((4, 3), low=.1, high=.9), In((4, 3), low=0, high=1)
add("binary_cross_entropy", "F.binary_cross_entropy(a, b), F.binary_cross_entropy(a, b, reduction='sum')", UNIT, OTHER)
add("binary_crossentropy", "a.binary_crossentropy(b), a.binary_crossentropy_logits(b)", UNIT, OTHER,
    theirs="F.binary_cross_entropy(a, b), F.binary_cross_entropy_with_logits(a, b)")
add("binary_cross_entropy at the ends", "F.binary_cross_entropy(a, b, reduction='none')",
    In((4,), values=(0.0, 1.0, 0.0, 1.0)),
    In((4,), values=(0.0, 1.0, 1.0, 0.0)), backward=False)
add("binary_cross_entropy_with_logits, weights", "F.binary_cross_entropy_with_logits(a, b, weight=c, pos_weight=d)",
    CLASSES, OTHER,
    In((3,), grad=False), In((3,), low=.5, grad=False))
add("huber_loss delta", "F.huber_loss(a, b, delta=0.5), F.smooth_l1_loss(a, b, beta=0.3)", CLASSES, OTHER)
add("kl_div", "F.kl_div(a, b), F.kl_div(a, b, reduction='batchmean'), F.kl_div(a, b, reduction='sum')", CLASSES, UNIT)
add("kl_div of logarithms", "F.kl_div(a, b, log_target=True, reduction='batchmean')", CLASSES, CLASSES)
add("poisson_nll_loss", "F.poisson_nll_loss(a, b), F.poisson_nll_loss(a + 3, b, log_input=False)", CLASSES,
    In((4, 3), low=0, high=3, grad=False))
add("poisson_nll_loss in full", "F.poisson_nll_loss(a, b, full=True)", CLASSES, In((4, 3), low=0, high=3, grad=False))
add("gaussian_nll_loss", "F.gaussian_nll_loss(a, b, c), F.gaussian_nll_loss(a, b, c, full=True)", CLASSES, OTHER, UNIT)
SIGNS = In((4,), values=(1.0, -1.0, -1.0, 1.0), grad=False)
add("hinge_embedding_loss", "F.hinge_embedding_loss(a, b, margin=0.7)", In((4,)), SIGNS)
add("margin_ranking_loss", "F.margin_ranking_loss(a, b, c, margin=0.2)", In((4,)), In((4,)), SIGNS)
add("cosine_embedding_loss", "F.cosine_embedding_loss(a, b, c, margin=0.1)", CLASSES, CLASSES, SIGNS)
add("triplet_margin_loss",
    "F.triplet_margin_loss(a, b, c), F.triplet_margin_loss(a, b, c, margin=2.0, p=1, swap=True)", CLASSES, CLASSES,
    CLASSES)
add("multilabel_soft_margin_loss", "F.multilabel_soft_margin_loss(a, b)", CLASSES, In((4, 3), "bool"),
    theirs="F.multilabel_soft_margin_loss(a, b.float())")

# ---- creation
for text in ("T.zeros(2, 3), T.ones((2, 3)), T.full((2,), 1.5), T.full((2,), fill_value=7)",
             "T.arange(5), T.arange(2, 9, 3), T.arange(5, 0, -2)",
             "T.arange(0, 1, 0.25), T.arange(0.5, 3), T.arange(start=1, end=4, step=2)",
             "T.linspace(0, 1, 5), T.linspace(3, -2, 4)",
             "T.linspace(1, 2, 1), T.logspace(0, 2, 3), T.logspace(0, 3, 4, base=2.0)",
             "T.eye(3), T.eye(2, 3), T.eye(n=3, m=2)",
             "T.tril_indices(3, 3), T.triu_indices(2, 4, 1)", "T.zeros(0, 2), T.arange(0)",
             "T.hann_window(5), T.hamming_window(6), T.hann_window(4, periodic=False)"):
  add(text, text, loose="int")
add("like", "T.zeros_like(a), T.ones_like(a), T.full_like(a, 2.5), T.full_like(a, fill_value=3)", In((2, 3)),
    backward=False)
add("new", "a.new_zeros(2), a.new_ones((2, 1)), a.new_full((2,), 3.0)", In((2, 3), "float16"), backward=False)
for kind in ("int8", "uint8", "int64", "float16", "float64", "bool", BFLOAT16):
  add(f"filled of {kind}",
      f"T.zeros(2, dtype=dtypes.{kind}), T.ones(2, dtype=dtypes.{kind}), T.full((2,), 1, dtype=dtypes.{kind})",
      theirs=f"T.zeros(2, dtype=torch.{kind}), T.ones(2, dtype=torch.{kind}), T.full((2,), 1, dtype=torch.{kind})")
  if kind != "bool": add(f"arange of {kind}", f"T.arange(1, 6, 2, dtype=dtypes.{kind})",
                         theirs=f"T.arange(1, 6, 2, dtype=torch.{kind})")
add("arange of fractions as integers", "T.arange(0, 3, 0.5, dtype=dtypes.int32)",
    theirs="torch.arange(0, 3, 0.5).int()")
for kind, other in [("float32", "int8"), ("int16", "int64"), ("uint8", "float32"), ("float64", "float32"),
                    ("int32", "int32")]:
  add(f"bitcast of {kind} to {other}", f"a.bitcast(dtypes.{other})", In((2, 4), kind, 0, 99),
      theirs=f"a.view(torch.{other})", backward=False)
add("casts by name", "a.short(), a.char(), a.byte(), a.type_as(b)", In((5,), low=0, high=9), In((1,), "float16"),
    backward=False)
add("cast", "a.cast(dtypes.int32), a.half(), a.bfloat16(), a.double(), a.bool(), a.long()", In((5,)), backward=False,
    theirs="a.int(), a.half(), a.bfloat16(), a.double(), a.bool(), a.long()")
