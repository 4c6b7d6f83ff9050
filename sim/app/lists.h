/* lists.h - what `dlsim list` can print: shipped files, and the entries of every table with their options and ranges.
 */
#ifndef DL_APP_LISTS_H
#define DL_APP_LISTS_H

#include <jansson.h>

void dl_list_topologies(void);
void dl_list_devices(void);
void dl_list_transports(void);
void dl_list_workloads(void);
void dl_list_strategies(void);
void dl_list_schedules(void);
void dl_list_software(void);
void dl_list_collectives(void);
void dl_list_engines(void);

/* Add an object for each name of the list: its list, kind, name, doc; the path of a file, the operation of an
 * algorithm. */
void dl_list_json(const char *list, json_t *to);

#endif
