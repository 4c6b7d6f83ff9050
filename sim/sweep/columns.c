#include "sim/sweep/columns.h"

#include <stdlib.h>

void dl_bind_json(sqlite3_stmt *statement, int parameter, const json_t *value)
{
    if (json_is_string(value))
        sqlite3_bind_text(statement, parameter, json_string_value(value), -1, SQLITE_TRANSIENT);
    else if (json_is_integer(value))
        sqlite3_bind_int64(statement, parameter, json_integer_value(value));
    else if (json_is_real(value))
        sqlite3_bind_double(statement, parameter, json_real_value(value));
    else if (json_is_boolean(value))
        sqlite3_bind_int(statement, parameter, json_is_true(value));
    else if (!value || json_is_null(value))
        sqlite3_bind_null(statement, parameter);
    else
        sqlite3_bind_text(statement, parameter, json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS), -1, free);
}

json_t *dl_column_json(sqlite3_stmt *statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return json_integer(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT: return json_real(sqlite3_column_double(statement, column));
    case SQLITE_TEXT: return json_string((const char *)sqlite3_column_text(statement, column));
    default: return json_null();
    }
}
