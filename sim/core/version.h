/* version.h - the version of dlsim, as CMakeLists.txt has it. */
#ifndef DL_CORE_VERSION_H
#define DL_CORE_VERSION_H

const char *dl_version(void);

#endif
