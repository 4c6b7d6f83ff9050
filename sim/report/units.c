#include "sim/report/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct prefix {
    double factor;
    const char *unit;
};

/* The prefixes go from small to large. */
static char *format(double x, const struct prefix *prefixes, size_t n, char text[DL_QUANTITY])
{
    size_t i = 0;
    while (i + 1 < n && fabs(x) >= 0.9995 * prefixes[i + 1].factor) i++;
    const double scaled = x / prefixes[i].factor;
    const double least = 0.005; /* what rounds to 0.00 is nothing */
    if (fabs(scaled) < least) {
        snprintf(text, DL_QUANTITY, "0 %s", prefixes[i].unit);
        return text;
    }
    const int decimals = fabs(scaled) < 9.995 ? 2 : fabs(scaled) < 99.95 ? 1 : 0;
    snprintf(text, DL_QUANTITY, "%.*f %s", decimals, scaled, prefixes[i].unit);
    return text;
}

char *dl_format_seconds(double seconds, char text[DL_QUANTITY])
{
    static const struct prefix prefixes[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
    return format(seconds, prefixes, sizeof prefixes / sizeof *prefixes, text);
}

char *dl_format_bytes(double bytes, char text[DL_QUANTITY])
{
    static const struct prefix prefixes[] = {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}};
    return format(bytes, prefixes, sizeof prefixes / sizeof *prefixes, text);
}

char *dl_format_parameters(double parameters, char text[DL_QUANTITY])
{
    static const struct prefix prefixes[] = {{1e3, "k"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}};
    return format(parameters, prefixes, sizeof prefixes / sizeof *prefixes, text);
}

char *dl_format_rate(double bytes_per_s, char text[DL_QUANTITY])
{
    dl_format_bytes(bytes_per_s, text);
    strncat(text, "/s", DL_QUANTITY - strlen(text) - 1);
    return text;
}

char *dl_format_flop(double flop, char text[DL_QUANTITY])
{
    static const struct prefix prefixes[] = {{1e6, "MFLOP"},  {1e9, "GFLOP"},  {1e12, "TFLOP"},
                                             {1e15, "PFLOP"}, {1e18, "EFLOP"}, {1e21, "ZFLOP"}};
    return format(flop, prefixes, sizeof prefixes / sizeof *prefixes, text);
}

char *dl_format_flop_rate(double flop_per_s, char text[DL_QUANTITY])
{
    dl_format_flop(flop_per_s, text);
    strncat(text, "/s", DL_QUANTITY - strlen(text) - 1);
    return text;
}

char *dl_format_watts(double watts, char text[DL_QUANTITY])
{
    static const struct prefix prefixes[] = {{1, "W"}, {1e3, "kW"}, {1e6, "MW"}};
    return format(watts, prefixes, sizeof prefixes / sizeof *prefixes, text);
}

char *dl_format_energy(double joules, char text[DL_QUANTITY])
{
    static const struct prefix prefixes[] = {{1, "J"},       {1e3, "kJ"},     {3.6e6, "kWh"},
                                             {3.6e9, "MWh"}, {3.6e12, "GWh"}, {3.6e15, "TWh"}};
    return format(joules, prefixes, sizeof prefixes / sizeof *prefixes, text);
}

char *dl_format_mass(double grams, char text[DL_QUANTITY])
{
    static const struct prefix prefixes[] = {{1, "g"}, {1e3, "kg"}, {1e6, "t"}, {1e9, "kt"}};
    return format(grams, prefixes, sizeof prefixes / sizeof *prefixes, text);
}

char *dl_format_number(double x, char text[DL_QUANTITY])
{
    const double four_digits = 999.5;
    if (fabs(x) >= four_digits) return dl_format_count(x, text);
    snprintf(text, DL_QUANTITY, "%.3g", x);
    return text;
}

char *dl_format_count(double count, char text[DL_QUANTITY])
{
    char digits[DL_QUANTITY];
    const int n = snprintf(digits, sizeof digits, "%.0f", count);
    char *out = text;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

char *dl_format_duration(double seconds, char text[DL_QUANTITY])
{
    static const struct prefix units[] = {{86400, "days"}, {3600, "hours"}, {60, "min"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const double x = seconds / units[i].factor;
        if (x < 2) continue;
        snprintf(text, DL_QUANTITY, "%.*f %s", x < 9.995 ? 2 : 1, x, units[i].unit);
        return text;
    }
    return dl_format_seconds(seconds, text);
}
