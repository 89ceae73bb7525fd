#pragma once

/// Every allocation of this executable, counted: those of malloc and its kin, and hence of operator new in
/// all its forms. Where a sanitizer has taken malloc, operator new alone is replaced and what calls malloc
/// directly is not seen.
namespace allocations {

/// Whether malloc itself is counted.
bool malloc_is_counted();

/// So far, of all threads.
long count();
/// Allocated and not yet freed.
long live();

/// From now on, allocation number n (1 is the next) fails, and all after it too when `all_after`.
void fail_at(long n, bool all_after);
/// None fails any more; returns whether one did.
bool stop_failing();

}  // namespace allocations
