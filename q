<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tinyhw: kernels of a run</title>
<style>
:root { color-scheme: light dark; --line: #8885; --new: #2a7d3c; --new-back: #2a7d3c22; --mark: #3b6fd422; }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; display: grid; grid-template-columns: 310px 1fr; height: 100vh; }
nav { overflow: auto; border-right: 1px solid var(--line); }
nav h1 { font-size: 15px; margin: 12px; }
nav button { display: block; width: 100%; border: 0; background: none; color: inherit; font: inherit; text-align: left; padding: 6px 12px; cursor: pointer; }
nav button[aria-current=true] { background: var(--mark); }
nav small { display: block; opacity: .7; }
main { overflow: auto; padding: 0 18px 18px; }
h2 { font-size: 17px; margin: 14px 0 4px; overflow-wrap: anywhere; }
.facts { opacity: .8; margin: 0 0 10px; }
.tabs { position: sticky; top: 0; background: Canvas; padding: 8px 0; display: flex; flex-wrap: wrap; gap: 6px; border-bottom: 1px solid var(--line); z-index: 1; }
.tabs button { border: 1px solid var(--line); border-radius: 6px; padding: 3px 9px; background: none; color: inherit; font: inherit; cursor: pointer; }
.tabs button[aria-current=true] { background: var(--mark); }
pre { font: 12px/1.45 ui-monospace, monospace; margin: 10px 0; white-space: pre; }
pre .new { color: var(--new); background: var(--new-back); }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; }
.both > div { overflow: auto; min-width: 0; }
h3 { font-size: 13px; margin: 12px 0 0; }
svg { max-width: 100%; height: auto; font: 11px ui-monospace, monospace; }
svg rect { fill: Canvas; stroke: currentColor; }
svg rect.new { stroke: var(--new); fill: var(--new-back); stroke-width: 2; }
svg text { fill: currentColor; }
svg path { fill: none; stroke: currentColor; opacity: .35; }
td, th { text-align: left; padding: 2px 10px 2px 0; vertical-align: top; font-weight: normal; }
td { font: 12px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
</style>
</head>
<body>
<nav><h1>Kernels</h1><div id="list"></div></nav>
<main id="main"><p>Nothing was compiled.</p></main>
<script id="data" type="application/json">[{"name":"e_2_73efd0","device":"AMD","grid":"1*1*1","source":"target datalayout = \"e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9\"\ntarget triple = \"amdgcn-amd-amdhsa\"\ndefine amdgpu_kernel void @e_2_73efd0(ptr addrspace(1) noalias noundef nonnull align 16 %data0, ptr addrspace(1) noalias noundef nonnull align 16 %data1) nounwind #0 !reqd_work_group_size !1 {\nentry:\n  %v0 = mul nuw nsw i32 0, 4\n  %v1 = zext nneg i32 %v0 to i64\n  %v2 = getelementptr inbounds i8, ptr addrspace(1) %data1, i64 %v1\n  %v3 = load \u003c2 x i32>, ptr addrspace(1) %v2, align 16\n  %v4 = extractelement \u003c2 x i32> %v3, i32 0\n  %v5 = add i32 %v4, 1\n  %v6 = extractelement \u003c2 x i32> %v3, i32 1\n  %v7 = add i32 %v6, 1\n  %v8 = insertelement \u003c2 x i32> poison, i32 %v5, i32 0\n  %v9 = insertelement \u003c2 x i32> %v8, i32 %v7, i32 1\n  %v10 = mul nuw nsw i32 0, 4\n  %v11 = zext nneg i32 %v10 to i64\n  %v12 = getelementptr inbounds i8, ptr addrspace(1) %data0, i64 %v11\n  store \u003c2 x i32> %v9, ptr addrspace(1) %v12, align 16\n  ret void\n}\nattributes #0 = { \"amdgpu-flat-work-group-size\"=\"1,1\" \"uniform-work-group-size\"=\"true\" \"amdgpu-no-dispatch-ptr\" \"amdgpu-no-queue-ptr\" \"amdgpu-no-implicitarg-ptr\" \"amdgpu-no-dispatch-id\" \"amdgpu-no-lds-kernel-id\" \"amdgpu-no-completion-action\" \"amdgpu-no-default-queue\" \"amdgpu-no-heap-ptr\" \"amdgpu-no-hostcall-ptr\" \"amdgpu-no-multigrid-sync-arg\" \"amdgpu-no-workgroup-id-x\" \"amdgpu-no-workgroup-id-y\" \"amdgpu-no-workgroup-id-z\" \"amdgpu-no-workitem-id-x\" \"amdgpu-no-workitem-id-y\" \"amdgpu-no-workitem-id-z\" }\n!llvm.module.flags = !{!2}\n!0 = !{!\"amdgpu-synchronize-as\", !\"local\"}\n!1 = !{i32 1, i32 1, i32 1}\n!2 = !{i32 1, !\"amdhsa_code_object_version\", i32 500}\n","block":"1*1*1","operations":2,"bytes":16,"compiled":0.05590414400012378,"runs":1,"code":"\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n\t.amdhsa_code_object_version 5\n\t.text\n\t.globl\te_2_73efd0\n\t.p2align\t8\n\t.type\te_2_73efd0,@function\ne_2_73efd0:\n\ts_load_b128 s[0:3], s[0:1], 0x0\n\ts_waitcnt lgkmcnt(0)\n\ts_load_b64 s[2:3], s[2:3], 0x0\n\ts_waitcnt lgkmcnt(0)\n\ts_add_i32 s2, s2, 1\n\ts_add_i32 s3, s3, 1\n\ts_delay_alu instid0(SALU_CYCLE_1)\n\tv_dual_mov_b32 v2, 0 :: v_dual_mov_b32 v1, s3\n\tv_mov_b32_e32 v0, s2\n\tglobal_store_b64 v2, v[0:1], s[0:1]\n\ts_endpgm\n\t.section\t.rodata,\"a\",@progbits\n\t.p2align\t6, 0x0\n\t.amdhsa_kernel e_2_73efd0\n\t\t.amdhsa_group_segment_fixed_size 0\n\t\t.amdhsa_private_segment_fixed_size 0\n\t\t.amdhsa_kernarg_size 16\n\t\t.amdhsa_user_sgpr_count 15\n\t\t.amdhsa_user_sgpr_dispatch_ptr 0\n\t\t.amdhsa_user_sgpr_queue_ptr 0\n\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\t\t.amdhsa_user_sgpr_dispatch_id 0\n\t\t.amdhsa_user_sgpr_private_segment_size 0\n\t\t.amdhsa_wavefront_size32 1\n\t\t.amdhsa_uses_dynamic_stack 0\n\t\t.amdhsa_enable_private_segment 0\n\t\t.amdhsa_system_sgpr_workgroup_id_x 1\n\t\t.amdhsa_system_sgpr_workgroup_id_y 0\n\t\t.amdhsa_system_sgpr_workgroup_id_z 0\n\t\t.amdhsa_system_sgpr_workgroup_info 0\n\t\t.amdhsa_system_vgpr_workitem_id 0\n\t\t.amdhsa_next_free_vgpr 3\n\t\t.amdhsa_next_free_sgpr 4\n\t\t.amdhsa_reserve_vcc 0\n\t\t.amdhsa_float_round_mode_32 0\n\t\t.amdhsa_float_round_mode_16_64 0\n\t\t.amdhsa_float_denorm_mode_32 3\n\t\t.amdhsa_float_denorm_mode_16_64 3\n\t\t.amdhsa_dx10_clamp 1\n\t\t.amdhsa_ieee_mode 1\n\t\t.amdhsa_fp16_overflow 0\n\t\t.amdhsa_workgroup_processor_mode 1\n\t\t.amdhsa_memory_ordered 1\n\t\t.amdhsa_forward_progress 1\n\t\t.amdhsa_shared_vgpr_count 0\n\t\t.amdhsa_inst_pref_size 1\n\t\t.amdhsa_exception_fp_ieee_invalid_op 0\n\t\t.amdhsa_exception_fp_denorm_src 0\n\t\t.amdhsa_exception_fp_ieee_div_zero 0\n\t\t.amdhsa_exception_fp_ieee_overflow 0\n\t\t.amdhsa_exception_fp_ieee_underflow 0\n\t\t.amdhsa_exception_fp_ieee_inexact 0\n\t\t.amdhsa_exception_int_div_zero 0\n\t.end_amdhsa_kernel\n\t.text\n.Lfunc_end0:\n\t.size\te_2_73efd0, .Lfunc_end0-e_2_73efd0\n\n\t.set e_2_73efd0.num_vgpr, 3\n\t.set e_2_73efd0.num_agpr, 0\n\t.set e_2_73efd0.numbered_sgpr, 4\n\t.set e_2_73efd0.num_named_barrier, 0\n\t.set e_2_73efd0.private_seg_size, 0\n\t.set e_2_73efd0.uses_vcc, 0\n\t.set e_2_73efd0.uses_flat_scratch, 0\n\t.set e_2_73efd0.has_dyn_sized_stack, 0\n\t.set e_2_73efd0.has_recursion, 0\n\t.set e_2_73efd0.has_indirect_call, 0\n\t.p2alignl 7, 3214868480\n\t.fill 96, 4, 3214868480\n\t.section\t.AMDGPU.gpr_maximums,\"\",@progbits\n\t.set amdgpu.max_num_vgpr, 0\n\t.set amdgpu.max_num_agpr, 0\n\t.set amdgpu.max_num_sgpr, 0\n\t.set amdgpu.max_num_named_barrier, 0\n\t.text\n\t.section\t\".note.GNU-stack\",\"\",@progbits\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .args:\n      - .actual_access:  write_only\n        .address_space:  global\n        .name:           data0\n        .offset:         0\n        .size:           8\n        .value_kind:     global_buffer\n      - .actual_access:  read_only\n        .address_space:  global\n        .name:           data1\n        .offset:         8\n        .size:           8\n        .value_kind:     global_buffer\n    .group_segment_fixed_size: 0\n    .kernarg_segment_align: 8\n    .kernarg_segment_size: 16\n    .max_flat_workgroup_size: 1\n    .name:           e_2_73efd0\n    .private_segment_fixed_size: 0\n    .reqd_workgroup_size:\n      - 1\n      - 1\n      - 1\n    .sgpr_count:     4\n    .sgpr_spill_count: 0\n    .symbol:         e_2_73efd0.kd\n    .uniform_work_group_size: 1\n    .uses_dynamic_stack: false\n    .vgpr_count:     3\n    .vgpr_spill_count: 0\n    .wavefront_size: 32\n    .workgroup_processor_mode: 1\namdhsa.target:   amdgcn-amd-amdhsa--gfx1100\namdhsa.version:\n  - 1\n  - 2\n...\n\n\t.end_amdgpu_metadata\n","options":["Opt(kind=OptKind.UPCAST, axis=0, amount=2)"],"seconds":0.14393739200022537,"clock":"mock's clock","mocked":4.3e-07,"stages":[{"name":"kernel","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["VIEW","dtypes.int32.ptr(2, GLOBAL)","ShapeTracker(views=(View(shape=(2,), strides=(1,), offset=0, mask=None),))",[0],"78662b70ec9b"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["VIEW","dtypes.int32.ptr(2, GLOBAL)","ShapeTracker(views=(View(shape=(2,), strides=(1,), offset=0, mask=None),))",[2],"2d34f6c41e19"],["LOAD","dtypes.int32","",[3],"80b24c8fdfc6"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["RESHAPE","dtypes.int32","(1,)",[5],"d97ba0492bb3"],["EXPAND","dtypes.int32","(2,)",[6],"492bed7c9ed0"],["ADD","dtypes.int32","",[4,7],"30d8ec22ff68"],["STORE","dtypes.void","",[1,8],"030798ccacb4"],["SINK","dtypes.void","",[9],"5b7b869b497d"]],"rules":[],"count":0},{"name":"lowered","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","2",[],"e1733b2a0f8f"],["RANGE","dtypes.int32","RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>)",[1],"de9fb29ff9d3"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,2],"78207f1811e8"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[4,2],"1be6cb9d81f7"],["LOAD","dtypes.int32","",[5],"cfc13c650845"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"5128eeaaf8df"],["STORE","dtypes.void","",[3,8],"fb6b68f82d04"],["SINK","dtypes.void","",[9],"73efd0b1015d"]],"rules":[["lambda (symbolic.py:385)","MUL(RANGE RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>), CONST 1)","RANGE RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>)(CONST 2)"],["constant_last (symbolic.py:325)","ADD(CONST 0, RANGE RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>))","ADD(RANGE RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>), CONST 0)"],["plus_nothing (symbolic.py:319)","ADD(RANGE RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>), CONST 0)","RANGE RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>)(CONST 2)"],["fold (symbolic.py:296)","AND(CONST True, CONST True)","CONST True()"]],"count":4},{"name":"legalized","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","2",[],"e1733b2a0f8f"],["RANGE","dtypes.int32","RangeArg(axis=0, kind=\u003cAxis.LOOP: 'loop'>)",[1],"de9fb29ff9d3"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,2],"78207f1811e8"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[4,2],"1be6cb9d81f7"],["LOAD","dtypes.int32","",[5],"cfc13c650845"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"5128eeaaf8df"],["STORE","dtypes.void","",[3,8],"fb6b68f82d04"],["SINK","dtypes.void","",[9],"73efd0b1015d"]],"rules":[],"count":0},{"name":"axes split by the options","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","2",[],"e1733b2a0f8f"],["RANGE","dtypes.int32","RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>)",[1],"017f2b32dc9c"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,2],"7f5f3b79cdbb"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[4,2],"cd0f20b8367b"],["LOAD","dtypes.int32","",[5],"92135b38ab75"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"9fc33d1b85b5"],["STORE","dtypes.void","",[3,8],"4f3641ab2c62"],["SINK","dtypes.void","",[9],"12d48e67412a"]],"rules":[["lambda (symbolic.py:385)","MUL(RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>), CONST 1)","RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>)(CONST 2)"],["constant_last (symbolic.py:325)","ADD(CONST 0, RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>))","ADD(RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>), CONST 0)"],["plus_nothing (symbolic.py:319)","ADD(RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>), CONST 0)","RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>)(CONST 2)"],["fold (symbolic.py:296)","MUL(CONST 0, CONST 2)","CONST 0()"],["plus_nothing (symbolic.py:319)","ADD(RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>), CONST 0)","RANGE RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>)(CONST 2)"]],"count":5},{"name":"reductions grouped","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","2",[],"e1733b2a0f8f"],["RANGE","dtypes.int32","RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>)",[1],"017f2b32dc9c"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,2],"7f5f3b79cdbb"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[4,2],"cd0f20b8367b"],["LOAD","dtypes.int32","",[5],"92135b38ab75"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"9fc33d1b85b5"],["STORE","dtypes.void","",[3,8],"4f3641ab2c62"],["SINK","dtypes.void","",[9],"12d48e67412a"]],"rules":[],"count":0},{"name":"widened","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","2",[],"e1733b2a0f8f"],["RANGE","dtypes.int32","RangeArg(axis=2, kind=\u003cAxis.UPCAST: 'upcast'>)",[1],"017f2b32dc9c"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,2],"7f5f3b79cdbb"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[4,2],"cd0f20b8367b"],["LOAD","dtypes.int32","",[5],"92135b38ab75"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"9fc33d1b85b5"],["STORE","dtypes.void","",[3,8],"4f3641ab2c62"],["SINK","dtypes.void","",[9],"12d48e67412a"]],"rules":[],"count":0},{"name":"expanded","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","0",[],"daa7eeb6fce8"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,1],"92776e757309"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[3,1],"19104597dcc4"],["LOAD","dtypes.int32","",[4],"acb16e2e532b"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[5,6],"5aa0f9f41bcb"],["STORE","dtypes.void","",[2,7],"d5d945a7ac97"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,6],"a86d4c2bda17"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[3,6],"1b6ad6bbb445"],["LOAD","dtypes.int32","",[10],"f29e85553f17"],["ADD","dtypes.int32","",[11,6],"2ade47f8be0a"],["STORE","dtypes.void","",[9,12],"5837d11ac8ae"],["SINK","dtypes.void","",[8,13],"c499c778f99c"]],"rules":[],"count":0},{"name":"vectors","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","0",[],"daa7eeb6fce8"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,1],"92776e757309"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[3,1],"19104597dcc4"],["LOAD","dtypes.int32.vec(2)","",[4],"223f49c5328a"],["GEP","dtypes.int32","(0,)",[5],"42603f8ec9d9"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"acc52486dbee"],["GEP","dtypes.int32","(1,)",[5],"7d89a3ffaf20"],["ADD","dtypes.int32","",[9,7],"31ba7d374594"],["VECTORIZE","dtypes.int32.vec(2)","",[8,10],"fb3ec418279d"],["STORE","dtypes.void","",[2,11],"1594403dd8a3"],["SINK","dtypes.void","",[12],"b65b27169f80"]],"rules":[],"count":0},{"name":"multiply-adds fused","linear":false,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","0",[],"daa7eeb6fce8"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,1],"92776e757309"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[3,1],"19104597dcc4"],["LOAD","dtypes.int32.vec(2)","",[4],"223f49c5328a"],["GEP","dtypes.int32","(0,)",[5],"42603f8ec9d9"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"acc52486dbee"],["GEP","dtypes.int32","(1,)",[5],"7d89a3ffaf20"],["ADD","dtypes.int32","",[9,7],"31ba7d374594"],["VECTORIZE","dtypes.int32.vec(2)","",[8,10],"fb3ec418279d"],["STORE","dtypes.void","",[2,11],"1594403dd8a3"],["SINK","dtypes.void","",[12],"b65b27169f80"]],"rules":[],"count":0},{"name":"linear program","linear":true,"rows":[["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","0",[],"bda1628bc26e"],["CONST","dtypes.int32","0",[],"daa7eeb6fce8"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[0,1],"92776e757309"],["DEFINE_GLOBAL","dtypes.int32.ptr(2, GLOBAL)","1",[],"ced8aeda92b2"],["INDEX","dtypes.int32.ptr(2, GLOBAL)","",[3,1],"19104597dcc4"],["LOAD","dtypes.int32.vec(2)","",[4],"223f49c5328a"],["GEP","dtypes.int32","(0,)",[5],"42603f8ec9d9"],["CONST","dtypes.int32","1",[],"d69be42f5cb5"],["ADD","dtypes.int32","",[6,7],"acc52486dbee"],["GEP","dtypes.int32","(1,)",[5],"7d89a3ffaf20"],["ADD","dtypes.int32","",[9,7],"31ba7d374594"],["VECTORIZE","dtypes.int32.vec(2)","",[8,10],"fb3ec418279d"],["STORE","dtypes.void","",[2,11],"1594403dd8a3"]],"rules":[],"count":0}]}]</script>
<script>
"use strict";
const kernels = JSON.parse(document.getElementById("data").textContent);
const LARGEST = 160;  // nodes of a graph that is drawn
const make = (tag, text, props = {}) => { const e = Object.assign(document.createElement(tag), props); if (text !== undefined) e.textContent = text; return e; };
const time = s => s === null ? "not run" : s < 1e-3 ? (s * 1e6).toFixed(1) + " us" : s < 1 ? (s * 1e3).toFixed(2) + " ms" : s.toFixed(2) + " s";
const took = kernel => time(kernel.seconds) + (kernel.mocked === null ? "" : ` of the host (${time(kernel.mocked)} on the ${kernel.clock})`);

function text(rows, known) {
  const pre = make("pre");
  rows.forEach(([op, type, arg, src, key], i) => {
    const line = `${String(i).padStart(4)} ${op.padEnd(13)} ${type.padEnd(22)} ${("[" + src.join(", ") + "]").padEnd(16)} ${arg}\n`;
    pre.append(known && !known.has(key) ? make("span", line, {className: "new"}) : line);
  });
  return pre;
}

function drawing(rows, known) {
  const depth = [], layers = [], NS = "http://www.w3.org/2000/svg";
  rows.forEach(([, , , src], i) => { depth[i] = src.length ? 1 + Math.max(...src.map(s => depth[s])) : 0; (layers[depth[i]] ||= []).push(i); });
  const at = [], W = 158, H = 34, DX = 12, DY = 30, widest = Math.max(...layers.map(l => l.length));
  layers.forEach((layer, d) => {
    const centre = i => { const s = rows[i][3]; return s.length ? s.reduce((a, x) => a + at[x][0], 0) / s.length : i; };
    if (d) layer.sort((a, b) => centre(a) - centre(b));
    layer.forEach((i, k) => at[i] = [(k + (widest - layer.length) / 2) * (W + DX), d * (H + DY)]);
  });
  const svg = document.createElementNS(NS, "svg"), put = (tag, props, parent = svg) => { const e = document.createElementNS(NS, tag); for (const k in props) e.setAttribute(k, props[k]); parent.append(e); return e; };
  const w = widest * (W + DX), h = layers.length * (H + DY);
  svg.setAttribute("viewBox", `-2 -2 ${w + 4} ${h + 4}`); svg.setAttribute("width", w); svg.setAttribute("role", "img"); svg.setAttribute("aria-label", "the graph, sources above their users");
  rows.forEach(([, , , src], i) => src.forEach(s => { const [x, y] = at[s], [u, v] = at[i]; put("path", {d: `M${x + W / 2} ${y + H} C${x + W / 2} ${y + H + DY / 2} ${u + W / 2} ${v - DY / 2} ${u + W / 2} ${v}`}); }));
  rows.forEach(([op, type, arg, , key], i) => {
    const [x, y] = at[i], g = put("g", {}), short = s => s.length > 23 ? s.slice(0, 22) + "…" : s;
    put("title", {}, g).textContent = `${i} ${op} ${type} ${arg}`;
    put("rect", {x, y, width: W, height: H, rx: 5, class: known && !known.has(key) ? "new" : ""}, g);
    put("text", {x: x + 6, y: y + 14}, g).textContent = short(`${i} ${op} ${arg}`);
    put("text", {x: x + 6, y: y + 28, opacity: .65}, g).textContent = short(type);
  });
  return svg;
}

function stage(kernel, k) {
  const box = make("div"), stages = kernel.stages, now = stages[k], before = k ? stages[k - 1] : null;
  const known = before && new Set(before.rows.map(r => r[4]));
  if (now.linear || now.rows.length > LARGEST) { box.append(text(now.rows, now.linear ? null : known)); }
  else {
    const both = make("div", undefined, {className: "both"});
    if (before) { const a = make("div"); a.append(make("h3", "before: " + before.name), before.rows.length > LARGEST ? text(before.rows) : drawing(before.rows)); both.append(a); }
    const b = make("div"); b.append(make("h3", "after: " + now.name), drawing(now.rows, known)); both.append(b);
    box.append(both, text(now.rows, known));
  }
  if (now.rules.length) {
    box.append(make("h3", `${now.count} rewrites by rules` + (now.count > now.rules.length ? `, the first ${now.rules.length}` : "")));
    const table = make("table");
    now.rules.forEach(([rule, a, b]) => { const row = make("tr"); row.append(make("td", rule), make("td", a), make("td", "→"), make("td", b)); table.append(row); });
    box.append(table);
  }
  return box;
}

function show(kernel) {
  const main = document.getElementById("main"), tabs = make("div", undefined, {className: "tabs"}), body = make("div");
  const pages = kernel.stages.map((s, k) => [s.name, () => stage(kernel, k)]);
  pages.push(["options", () => make("pre", kernel.options.join("\n") || "none")]);
  pages.push(["source", () => make("pre", kernel.source)], ["machine code", () => make("pre", kernel.code)]);
  const facts = `${kernel.device}; grid ${kernel.grid}, block ${kernel.block}; ${kernel.operations.toLocaleString()} operations, ${kernel.bytes.toLocaleString()} bytes; compiled in ${time(kernel.compiled)}; ran ${kernel.runs} times, ${took(kernel)} each`;
  main.replaceChildren(make("h2", kernel.name), make("p", facts, {className: "facts"}), tabs, body);
  pages.forEach(([name, page], k) => {
    const button = make("button", name);
    button.onclick = () => { for (const b of tabs.children) b.setAttribute("aria-current", b === button); body.replaceChildren(page()); };
    tabs.append(button);
    if (!k) button.click();
  });
}

kernels.forEach((kernel, k) => {
  const button = make("button", kernel.name);
  button.append(make("small", `${kernel.device}, ${took(kernel)}, ${kernel.runs} runs`));
  button.onclick = () => { for (const b of button.parentNode.children) b.setAttribute("aria-current", b === button); show(kernel); };
  document.getElementById("list").append(button);
  if (!k) button.click();
});
</script>
</body>
</html>
