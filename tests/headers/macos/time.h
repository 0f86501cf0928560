/* macOS: the clock of time.monotonic(). Source: clock_gettime_nsec_np(3). */

#ifndef EPOQUE_TESTS_TIME_H
#define EPOQUE_TESTS_TIME_H

#include_next <time.h>
#include <stdint.h>
#define CLOCK_UPTIME_RAW 8
uint64_t clock_gettime_nsec_np(int clock);

#endif
