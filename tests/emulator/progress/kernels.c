/* Kernels whose workgroups wait for one another. make.sh compiles them for each generation; tests run the objects. */
typedef unsigned u32;
#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3)))
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected"))) void
#define DEVICE __MEMORY_SCOPE_DEVICE
#define LOAD(p) __scoped_atomic_load_n(p, __ATOMIC_ACQUIRE, DEVICE)
#define STORE(p, v) __scoped_atomic_store_n(p, v, __ATOMIC_RELEASE, DEVICE)
#define ADD(p, v) __scoped_atomic_fetch_add(p, v, __ATOMIC_ACQ_REL, DEVICE)
#define SWAP(p, v) __scoped_atomic_exchange_n(p, v, __ATOMIC_ACQ_REL, DEVICE)

static inline u32 lane(void) { return __builtin_amdgcn_workitem_id_x(); }
static inline u32 group(void) { return __builtin_amdgcn_workgroup_id_x(); }
static inline void meet(void) {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  __builtin_amdgcn_s_barrier();
}
static inline _Bool take(GLOBAL u32 *lock) {
  u32 open = 0;
  return __scoped_atomic_compare_exchange_n(lock, &open, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED, DEVICE);
}

/* Each workgroup adds to a plain counter under a lock: compare and exchange. */
KERNEL spin_lock(GLOBAL u32 *lock, GLOBAL u32 *counter, u32 rounds) {
  if (lane()) return;
  for (u32 k = 0; k < rounds; k++) {
    while (!take(lock));
    *counter += group() + 1;
    STORE(lock, 0);
  }
}

/* The same with an exchange, which writes while it waits, and with sleeps that grow longer. */
KERNEL sleep_lock(GLOBAL u32 *lock, GLOBAL u32 *counter, u32 rounds) {
  if (lane()) return;
  for (u32 k = 0; k < rounds; k++) {
    for (u32 wait = 1; SWAP(lock, 1); wait = wait < 64 ? wait * 2 : wait)
      for (u32 n = 0; n < wait; n++) __builtin_amdgcn_s_sleep(1);
    *counter += group() + 1;
    STORE(lock, 0);
  }
}

/* lock[0]: the next ticket, lock[1]: the one that is served. Waves of one workgroup wait for each other too. */
KERNEL ticket_lock(GLOBAL u32 *lock, GLOBAL u32 *counter, u32 rounds) {
  if (lane() & 63) return;
  for (u32 k = 0; k < rounds; k++) {
    u32 mine = ADD(lock, 1);
    while (LOAD(lock + 1) != mine);
    *counter += group() + 1;
    STORE(lock + 1, mine + 1);
  }
}

/* Every lane takes the lock once; who has it gives it back before the next look of the others. */
KERNEL lane_lock(GLOBAL u32 *lock, GLOBAL u32 *counter, u32 rounds) {
  for (u32 done = 0; !done;) {
    if (take(lock)) {
      *counter += lane() + 1;
      STORE(lock, 0);
      done = 1;
    }
    __asm__ volatile("" : "+v"(done));  // else the compiler moves the addition behind the loop: the deadlock below
  }
}

/* Every lane waits for the lock before the one that has it goes on: a deadlock within a wave. */
KERNEL lane_deadlock(GLOBAL u32 *lock, GLOBAL u32 *counter, u32 rounds) {
  while (!take(lock));
  *counter += lane() + 1;
  STORE(lock, 0);
}

/* Workgroup g waits for a flag of the one before it, or behind it, and passes a value on: volatile, no atomics. */
KERNEL chain(GLOBAL volatile u32 *flags, GLOBAL volatile u32 *data, u32 groups, u32 back) {
  if (lane()) return;
  u32 g = group(), from = back ? g + 1 : g - 1, value = 1;
  if (from < groups) {
    while (!flags[from]);
    value = data[from];
  }
  data[g] = value * 3 + g;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  flags[g] = 1;
}

/* Rounds with a barrier of all workgroups between them: each reads what its neighbour wrote in the last round. */
KERNEL grid_barrier(GLOBAL u32 *arrived, GLOBAL u32 *data, u32 groups, u32 rounds) {
  u32 g = group();
  for (u32 k = 0; k < rounds; k++) {
    u32 value = data[(k & 1) * groups + (g + 1) % groups];
    if (!lane()) data[(~k & 1) * groups + g] = value * 5 + g;
    meet();
    if (!lane()) {
      ADD(arrived, 1);
      while (LOAD(arrived) < (k + 1) * groups) __builtin_amdgcn_s_sleep(2);
    }
    meet();
  }
}

/* Prefix sums with decoupled look-back: a workgroup takes its number by a count, publishes its own sum (state 1 in the
   top bits), looks back until it finds a whole prefix (state 2), and publishes its own. */
KERNEL look_back(GLOBAL u32 *next, GLOBAL u32 *state, GLOBAL u32 *data) {
  static __attribute__((loader_uninitialized)) LDS u32 shared[128];
  static __attribute__((loader_uninitialized)) LDS u32 part, before;
  u32 t = lane(), n = 128;
  if (!t) part = ADD(next, 1);
  meet();
  u32 p = part, at = p * n + t, own = data[at];
  shared[t] = own;
  meet();
  for (u32 step = 1; step < n; step *= 2) {
    u32 other = t >= step ? shared[t - step] : 0;
    meet();
    shared[t] += other;
    meet();
  }
  if (!t) {
    u32 total = shared[n - 1], sum = 0;
    STORE(state + p, (p ? 1u << 30 : 2u << 30) | total);
    for (u32 q = p; q--;) {
      u32 seen;
      while (!((seen = LOAD(state + q)) >> 30));
      sum += seen & 0x3FFFFFFF;
      if (seen >> 31) break;
    }
    if (p) STORE(state + p, 2u << 30 | (sum + total));
    before = sum;
  }
  meet();
  data[at] = before + shared[t];
}

/* Stream-K: `groups` workgroups share the steps of `tiles` tiles evenly; who does not finish a tile leaves its part and
   a flag, who starts it waits for the parts of those behind and adds them. */
KERNEL stream_k(GLOBAL u32 *flags, GLOBAL u32 *parts, GLOBAL u32 *tiles, GLOBAL u32 *in, u32 groups, u32 steps,
                u32 count) {
  u32 g = group(), t = lane(), total = steps * count, each = (total + groups - 1) / groups;
  u32 from = g * each, to = from + each < total ? from + each : total;
  while (from < to) {
    u32 tile = from / steps, end = (tile + 1) * steps, stop = end < to ? end : to, sum = 0;
    for (u32 k = from; k < stop; k++) sum += in[k] * (t + 1);
    if (from != tile * steps) {
      parts[g * 64 + t] = sum;
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
      meet();
      if (!t) STORE(flags + g, 1);
    } else {
      for (u32 other = g + 1, covered = stop; covered < end; other++) {
        while (!LOAD(flags + other));
        sum += parts[other * 64 + t];
        covered = (other + 1) * each < end ? (other + 1) * each : end;
      }
      tiles[tile * 64 + t] = sum;
    }
    from = stop;
  }
}

/* Two locks, taken in one order by even workgroups and in the other by odd ones, who first wait for each other. */
KERNEL crossed(GLOBAL u32 *lock, GLOBAL u32 *met) {
  if (lane()) return;
  u32 g = group() & 1;
  while (!take(lock + 64 * g));
  ADD(met, 1);
  while (LOAD(met) < 2);
  while (!take(lock + 64 * (1 - g)));
  STORE(lock, 0);
  STORE(lock + 64, 0);
}

/* Waits for somebody else: the host, another queue. Then answers. */
KERNEL answer(GLOBAL volatile u32 *asked, GLOBAL volatile u32 *answered, u32 question, u32 rounds) {
  if (lane()) return;
  for (u32 k = 1; k <= rounds; k++) {
    while (*asked != question + k);
    *answered = question + k;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
  }
}

/* Asks, and waits for the answer; the other side of `answer`. */
KERNEL ask(GLOBAL volatile u32 *asked, GLOBAL volatile u32 *answered, u32 question, u32 rounds) {
  if (lane()) return;
  for (u32 k = 1; k <= rounds; k++) {
    *asked = question + k;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    while (*answered != question + k);
  }
}

/* Counts how often it looks while it waits; gives up after `limit` looks. */
KERNEL counted(GLOBAL volatile u32 *flag, GLOBAL u32 *looks, u32 limit) {
  if (lane()) return;
  u32 n = 0;
  while (!*flag && n < limit) n++;
  *looks = n == limit ? 0xFFFFFFFF : 1;
}
