define amdgpu_kernel void @add(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %out, i32 %n) #0 {
  %at = call i32 @at()
  %inside = icmp slt i32 %at, %n
  br i1 %inside, label %work, label %done
work:
  %px = getelementptr float, ptr addrspace(1) %x, i32 %at
  %py = getelementptr float, ptr addrspace(1) %y, i32 %at
  %po = getelementptr float, ptr addrspace(1) %out, i32 %at
  %a = load float, ptr addrspace(1) %px
  %b = load float, ptr addrspace(1) %py
  %sum = fadd float %a, %b
  store float %sum, ptr addrspace(1) %po
  br label %done
done:
  ret void
}

define amdgpu_kernel void @collatz(ptr addrspace(1) %x, ptr addrspace(1) %steps, i32 %n) #0 {
  %at = call i32 @at()
  %inside = icmp slt i32 %at, %n
  br i1 %inside, label %start, label %done
start:
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %at
  %first = load i32, ptr addrspace(1) %px
  br label %loop
loop:
  %v = phi i32 [ %first, %start ], [ %next, %step ]
  %count = phi i32 [ 0, %start ], [ %more, %step ]
  %go = icmp sgt i32 %v, 1
  br i1 %go, label %step, label %end
step:
  %bit = and i32 %v, 1
  %odd = icmp ne i32 %bit, 0
  %half = sdiv i32 %v, 2
  %triple = mul i32 %v, 3
  %up = add i32 %triple, 1
  %next = select i1 %odd, i32 %up, i32 %half
  %more = add i32 %count, 1
  br label %loop
end:
  %ps = getelementptr i32, ptr addrspace(1) %steps, i32 %at
  store i32 %count, ptr addrspace(1) %ps
  br label %done
done:
  ret void
}

; Each item counts the values before its own: a sort without a loop over passes.
@shared = internal addrspace(3) global [64 x i32] undef

define amdgpu_kernel void @sort(ptr addrspace(1) %x, ptr addrspace(1) %up, ptr addrspace(1) %down) #0 {
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %at = call i32 @at()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %at
  %mine = load i32, ptr addrspace(1) %px
  %slot = getelementptr [64 x i32], ptr addrspace(3) @shared, i32 0, i32 %item
  store i32 %mine, ptr addrspace(3) %slot
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  br label %loop
loop:
  %k = phi i32 [ 0, %0 ], [ %next, %loop ]
  %rank = phi i32 [ 0, %0 ], [ %sum, %loop ]
  %pk = getelementptr [64 x i32], ptr addrspace(3) @shared, i32 0, i32 %k
  %other = load i32, ptr addrspace(3) %pk
  %less = icmp slt i32 %other, %mine
  %same = icmp eq i32 %other, %mine
  %earlier = icmp ult i32 %k, %item
  %tie = and i1 %same, %earlier
  %before = or i1 %less, %tie
  %one = zext i1 %before to i32
  %sum = add i32 %rank, %one
  %next = add i32 %k, 1
  %all = icmp eq i32 %next, 64
  br i1 %all, label %end, label %loop
end:
  %base = sub i32 %at, %item
  %low = add i32 %base, %sum
  %last = sub i32 63, %sum
  %high = add i32 %base, %last
  %pu = getelementptr i32, ptr addrspace(1) %up, i32 %low
  %pd = getelementptr i32, ptr addrspace(1) %down, i32 %high
  store i32 %mine, ptr addrspace(1) %pu
  store i32 %mine, ptr addrspace(1) %pd
  ret void
}

define amdgpu_kernel void @integers(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %quotient,
                                    ptr addrspace(1) %remainder, ptr addrspace(1) %high, ptr addrspace(1) %wide,
                                    i32 %n) #0 {
  %at = call i32 @at()
  %inside = icmp slt i32 %at, %n
  br i1 %inside, label %work, label %done
work:
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %at
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %at
  %a = load i32, ptr addrspace(1) %px
  %b = load i32, ptr addrspace(1) %py
  %q = sdiv i32 %a, %b
  %r = srem i32 %a, %b
  %ua = zext i32 %a to i64
  %ub = zext i32 %b to i64
  %product = mul i64 %ua, %ub
  %upper = lshr i64 %product, 32
  %h = trunc i64 %upper to i32
  %sa = sext i32 %a to i64
  %sb = sext i32 %b to i64
  %scaled = mul i64 %sa, 1000003
  %long = mul i64 %scaled, %sb
  %seven = mul i64 %sb, 7
  %divisor = add i64 %seven, 1
  %lq = sdiv i64 %long, %divisor
  %shifted = ashr i64 %long, 3
  %eleven = srem i64 %long, 11
  %mixed = xor i64 %shifted, %eleven
  %w = add i64 %lq, %mixed
  %pq = getelementptr i32, ptr addrspace(1) %quotient, i32 %at
  %pr = getelementptr i32, ptr addrspace(1) %remainder, i32 %at
  %ph = getelementptr i32, ptr addrspace(1) %high, i32 %at
  %pw = getelementptr i64, ptr addrspace(1) %wide, i32 %at
  store i32 %q, ptr addrspace(1) %pq
  store i32 %r, ptr addrspace(1) %pr
  store i32 %h, ptr addrspace(1) %ph
  store i64 %w, ptr addrspace(1) %pw
  br label %done
done:
  ret void
}

define internal i32 @at() alwaysinline {
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, 64
  %at = add i32 %base, %item
  ret i32 %at
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
attributes #0 = { "amdgpu-flat-work-group-size"="1,64" }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
