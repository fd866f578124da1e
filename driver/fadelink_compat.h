/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between the supported kernels. */
#ifndef FADELINK_COMPAT_H
#define FADELINK_COMPAT_H

#include <linux/device/class.h>
#include <linux/mm.h>
#include <linux/version.h>

/* unaligned.h moved in 6.12. */
#if KERNEL_VERSION(6, 12, 0) > LINUX_VERSION_CODE
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

/* class_create() lost its owner in 6.4. */
#if KERNEL_VERSION(6, 4, 0) > LINUX_VERSION_CODE
#define fade_class_create(name) class_create(THIS_MODULE, name)
#else
#define fade_class_create(name) class_create(name)
#endif

/* vm_flags became read-only in 6.3. */
#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
static inline void fade_vm_flags(struct vm_area_struct *vma,
				 unsigned long set, unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#else
static inline void fade_vm_flags(struct vm_area_struct *vma,
				 unsigned long set, unsigned long clear)
{
	vm_flags_mod(vma, set, clear);
}
#endif

#endif /* FADELINK_COMPAT_H */
