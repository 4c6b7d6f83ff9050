/* clock.h - the time of the computer that dlsim runs on, which no answer depends on. */
#ifndef DL_CORE_CLOCK_H
#define DL_CORE_CLOCK_H

/* Seconds since some moment; they only go forward. */
double dl_clock_s(void);

#endif
