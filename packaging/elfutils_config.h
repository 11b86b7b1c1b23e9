/* SPDX-License-Identifier: Apache-2.0 */
/* What the configure script of elfutils finds with glibc 2.17 and clang; packaging/libraries.json. */
#define CHECK_UNDEFINED 0
#define DEFAULT_AR_DETERMINISTIC false
#define HAVE_DECL_MEMPCPY 1
#define HAVE_DECL_MEMRCHR 1
#define HAVE_DECL_POWEROF2 1
#define HAVE_DECL_RAWMEMCHR 1
#define HAVE_DECL_REALLOCARRAY 0
#define HAVE_DECL_STRERROR_R 1
#define HAVE_ERROR_H 1
#define HAVE_ERR_H 1
#define HAVE_FALLTHROUGH 1
#define HAVE_GCC_STRUCT 1
#define HAVE_MREMAP 1
#define HAVE_STDATOMIC_H 1
#define HAVE_STRERROR_R 1
#define HAVE_SYS_USER_REGS 1
#define HAVE_VISIBILITY 1
#define PACKAGE "elfutils"
#define PACKAGE_NAME "elfutils"
#define PACKAGE_VERSION "0.188"
#define SIZEOF_LONG 8
#define STRERROR_R_CHAR_P 1
#define USE_ZLIB 1
#define VERSION "0.188"
#include <eu-config.h>
