@tile = internal addrspace(3) global [64 x i32] poison

define amdgpu_kernel void @add(ptr addrspace(1) %out, ptr addrspace(1) %a, float %k) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, 64
  %i = add i32 %base, %id
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %va = load float, ptr addrspace(1) %pa
  %sum = fadd float %va, %k
  %po = getelementptr float, ptr addrspace(1) %out, i32 %i
  store float %sum, ptr addrspace(1) %po
  ret void
}

define amdgpu_kernel void @turn(ptr addrspace(1) %out) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr [64 x i32], ptr addrspace(3) @tile, i32 0, i32 %id
  %x = mul i32 %id, 3
  store i32 %x, ptr addrspace(3) %p
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %back = sub i32 63, %id
  %q = getelementptr [64 x i32], ptr addrspace(3) @tile, i32 0, i32 %back
  %y = load i32, ptr addrspace(3) %q
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %id
  store i32 %y, ptr addrspace(1) %o
  ret void
}

define amdgpu_kernel void @spill(ptr addrspace(1) %out) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %m = alloca [16 x i32], addrspace(5)
  %slot = and i32 %id, 15
  %p = getelementptr [16 x i32], ptr addrspace(5) %m, i32 0, i32 %slot
  %x = add i32 %id, 100
  store volatile i32 %x, ptr addrspace(5) %p
  %y = load volatile i32, ptr addrspace(5) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %id
  store i32 %y, ptr addrspace(1) %o
  ret void
}

define amdgpu_kernel void @roots(ptr addrspace(1) %out, ptr addrspace(1) %a) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %odd = and i32 %id, 1
  %is = icmp eq i32 %odd, 1
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %id
  %v = load float, ptr addrspace(1) %pa
  br i1 %is, label %yes, label %no
yes:
  %s = call float @llvm.amdgcn.sqrt.f32(float %v)
  br label %loop
loop:
  %n = phi i32 [ 0, %yes ], [ %m, %loop ]
  %t = phi float [ %s, %yes ], [ %u, %loop ]
  %u = fmul float %t, 1.5
  %m = add i32 %n, 1
  %more = icmp ult i32 %m, %id
  br i1 %more, label %loop, label %no
no:
  %r = phi float [ %v, %0 ], [ %u, %loop ]
  %po = getelementptr float, ptr addrspace(1) %out, i32 %id
  store float %r, ptr addrspace(1) %po
  ret void
}
declare float @llvm.amdgcn.sqrt.f32(float)
