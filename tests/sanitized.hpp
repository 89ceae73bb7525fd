#pragma once

/// 1 where a sanitizer instruments the tests: it counts allocations of its own, and multiplies the time of
/// long cases.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FPRNN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FPRNN_SANITIZED 1
#endif
#endif
#ifndef FPRNN_SANITIZED
#define FPRNN_SANITIZED 0
#endif
