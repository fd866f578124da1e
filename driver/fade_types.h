/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The types of the rules, in the kernel and in user space. */
#ifndef FADE_TYPES_H
#define FADE_TYPES_H

#include <linux/types.h>

#ifndef __KERNEL__
#include <stdbool.h>
#include <stddef.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
#endif

#endif /* FADE_TYPES_H */
