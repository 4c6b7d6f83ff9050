/* units.h - numbers for people: three figures that count and a fitting prefix. */
#ifndef DL_REPORT_UNITS_H
#define DL_REPORT_UNITS_H

#include <stddef.h>

enum { DL_QUANTITY = 32 }; /* room for one */

/* "12.3 us", "96.5 GB/s". Returns text. */
char *dl_format_seconds(double seconds, char text[DL_QUANTITY]);
/* "15 min", "3.09 hours", "54.2 days", where that is two or more. */
char *dl_format_duration(double seconds, char text[DL_QUANTITY]);
char *dl_format_bytes(double bytes, char text[DL_QUANTITY]);
/* In millions, billions and trillions, as people tell the size of models: "175 B". */
char *dl_format_parameters(double parameters, char text[DL_QUANTITY]);
char *dl_format_rate(double bytes_per_s, char text[DL_QUANTITY]);
/* "61.2 TFLOP", "61.2 TFLOP/s" */
char *dl_format_flop(double flop, char text[DL_QUANTITY]);
char *dl_format_flop_rate(double flop_per_s, char text[DL_QUANTITY]);
/* "6.85 kW", "1.29 GWh", "552 t" */
char *dl_format_watts(double watts, char text[DL_QUANTITY]);
char *dl_format_energy(double joules, char text[DL_QUANTITY]);
char *dl_format_mass(double grams, char text[DL_QUANTITY]);
/* "8,388,608" */
char *dl_format_count(double count, char text[DL_QUANTITY]);
/* "0.0123", "36.8", "4,608": what has no unit here that takes a prefix. */
char *dl_format_number(double x, char text[DL_QUANTITY]);

#endif
