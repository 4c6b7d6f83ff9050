/* choices.h - words of options whose numbers are read outside of their strategy too, by what trains for real. */
#ifndef DL_STRATEGIES_CHOICES_H
#define DL_STRATEGIES_CHOICES_H

/* `exchange` of data: the fastest all-reduce; others are algorithms of that name. */
enum dl_sum_choice { DL_SUM_ALLREDUCE, DL_SUM_SERVERS, DL_SUM_SERVERS_SERIAL, DL_SUM_RINGS, DL_SUM_DIRECT_RING };

/* `method` of quantized_allreduce. */
enum dl_lossy_choice { DL_LOSSY_QSGD, DL_LOSSY_ONE_BIT, DL_LOSSY_TOP_K };

#endif
