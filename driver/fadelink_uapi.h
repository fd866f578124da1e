/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note OR Apache-2.0 */
/*
 * User interface of /dev/l3_fpga%d: one device for each front-end board (FEB).
 *
 * Numbers up to 0x39 and their structures are those of the published driver
 * (the paper's table 4); existing applications run unchanged.
 *
 *	fd = open("/dev/l3_fpga0", O_RDWR);
 *	length = ioctl(fd, FADE_IOC_GETBUFLEN);
 *	ring = mmap(NULL, 2 * length, PROT_READ, MAP_SHARED, fd, 0);
 *	ioctl(fd, FADE_IOC_GETMAC, &slave);
 *	ioctl(fd, FADE_IOC_STARTMAC);
 *	poll(...); n = ioctl(fd, FADE_IOC_READPTRS, &pointers);
 *	... n bytes at ring + pointers.tail ...
 *	ioctl(fd, FADE_IOC_WRITEPTRS, n);
 */
#ifndef FADELINK_UAPI_H
#define FADELINK_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FADE_IOC_MAGIC 0xA5

/**
 * struct fade_pointers - bytes of the ring
 * @head: byte after the last one received without a gap
 * @tail: first byte that the reader has not returned
 * @eof: the last packet and all before it have come
 */
struct fade_pointers {
	__s32 head;
	__s32 tail;
	__s8 eof;
} __attribute__((packed));

/**
 * struct fade_slave_id - the FEB of a device
 * @mac: its address
 * @devname: network interface, with NUL at the end
 */
struct fade_slave_id {
	__u8 mac[6];
	char devname[16];
} __attribute__((packed));

/**
 * struct fade_user_command - a user command and its response
 * @command: code, 0x0100 to 0xFFFF
 * @retries: FADE_IOC_USERCMD: number of attempts; with 0 it is not sent.
 *	FADE_IOC_FEBCMD: attempts after the first, at most 1000
 * @argument: argument
 * @timeout: time from each attempt to the next. FADE_IOC_USERCMD: jiffies.
 *	FADE_IOC_FEBCMD: milliseconds, 1 to 600000
 * @response: code u16, CSN u16, value u64, big-endian as on the wire
 */
struct fade_user_command {
	__u16 command;
	__u16 retries;
	__u32 argument;
	__u32 timeout;
	__u8 response[12];
} __attribute__((packed));

/* Wake the reader at this number of bytes: 0 (at once) to half the ring. */
#define FADE_IOC_SETWAKEUP	_IO(FADE_IOC_MAGIC, 0x30)
/* Returns the length of the ring in bytes. */
#define FADE_IOC_GETBUFLEN	_IO(FADE_IOC_MAGIC, 0x31)
/* Returns the bytes available; -EIO when the interface was removed. */
#define FADE_IOC_READPTRS	_IOR(FADE_IOC_MAGIC, 0x32, struct fade_pointers)
/* Returns bytes to the ring (argument: their number). */
#define FADE_IOC_WRITEPTRS	_IO(FADE_IOC_MAGIC, 0x33)
/*
 * Associates the device with a FEB. -EMEDIUMTYPE for an interface that is not
 * Ethernet, or a port of a bridge, bond or team.
 */
#define FADE_IOC_GETMAC		_IOW(FADE_IOC_MAGIC, 0x34, struct fade_slave_id)
/* START: the ring is empty. */
#define FADE_IOC_STARTMAC	_IO(FADE_IOC_MAGIC, 0x35)
/* STOP: the packet that is being filled becomes the last. */
#define FADE_IOC_STOPMAC	_IO(FADE_IOC_MAGIC, 0x36)
/* Ends the association, if there is one. */
#define FADE_IOC_FREEMAC	_IO(FADE_IOC_MAGIC, 0x37)
/* Sends a user command, waits for its response. */
#define FADE_IOC_USERCMD	_IOWR(FADE_IOC_MAGIC, 0x38, struct fade_user_command)
/* RESET: aborts the transmission. */
#define FADE_IOC_RESETMAC	_IO(FADE_IOC_MAGIC, 0x39)

/* Extensions of Fadelink. */

/**
 * struct fade_pointers64 - bytes since the start of the transmission
 * @head: received without a gap
 * @tail: returned by the reader
 * @origin: byte of the ring where the transmission began
 * @state: FADE_STATE_*
 * @error: 0, or the errno value of the failure
 */
struct fade_pointers64 {
	__u64 head;
	__u64 tail;
	__u64 origin;
	__u32 state;
	__u32 error;
};

#define FADE_STATE_IDLE		0
#define FADE_STATE_RUNNING	1
#define FADE_STATE_COMPLETE	2
#define FADE_STATE_ABORTED	3

/* Counters of a FEB, by name; each dropped frame is in exactly one. */
struct fade_statistics {
	__u64 packets;			/* stored */
	__u64 duplicates;		/* confirmed again */
	__u64 repaired;			/* stored after a later one */
	__u64 no_space;			/* dropped: no free place */
	__u64 not_started;		/* dropped: START not answered */
	__u64 protocol_errors;		/* dropped: against the window */
	__u64 wrong_length;		/* dropped */
	__u64 wrong_valid_words;	/* dropped */
	__u64 missing_frames;		/* missing sequence numbers */
	__u64 acks;
	__u64 responses;
	__u64 unexpected_responses;
	__u64 commands;
	__u64 resets;
	__u64 interrupted;		/* STARTs that found an earlier transmission */
	__u64 begun_again;		/* times, as its first packet did not come */
	__u64 delay;			/* last value, in clocks of the FEB */
};

/**
 * struct fade_config - settings of a device
 * @ring_packets: packets of its ring, a power of two, at least @window
 * @window: window of the FEB in packets, 1 to 64
 * @first_packet: number of the first packet: always 0, except in tests
 * @protocol: FADE_PROTOCOL_* of the FEB
 * @firmware: FADE_FIRMWARE_* of the FEB
 * @words: FADE_WORDS_*: how the data words are stored
 * @reserved: 0
 */
struct fade_config {
	__u64 ring_packets;
	__u32 window;
	__u32 first_packet;
	__u32 protocol;
	__u32 firmware;
	__u32 words;
	__u32 reserved;
};

#define FADE_PROTOCOL_ANY	0	/* START finds out */
#define FADE_PROTOCOL_FADE10G	1
#define FADE_PROTOCOL_FADE1	2

#define FADE_FIRMWARE_ANY	0	/* START finds out */
#define FADE_FIRMWARE_FADELINK	1
#define FADE_FIRMWARE_PUBLISHED_10G	2
#define FADE_FIRMWARE_PUBLISHED_V1	3

#define FADE_WORDS_WIRE		0	/* as on the wire */
#define FADE_WORDS_NATIVE	1	/* converted to native, by the order of the firmware */
#define FADE_WORDS_LITTLE	2	/* little-endian on the wire: converted to native */
#define FADE_WORDS_BIG		3	/* big-endian on the wire: converted to native */

/**
 * struct fade_feb_kind - kind of a FEB, found out by the last START
 * @protocol: FADE_PROTOCOL_*; 0: not known yet
 * @firmware: FADE_FIRMWARE_*; 0: not known yet
 */
struct fade_feb_kind {
	__u32 protocol;
	__u32 firmware;
};

/* How the end of a transmission is known. */
#define FADE_ENDING_UNKNOWN		0	/* it has not ended, or nothing more is known */
#define FADE_ENDING_CONFIRMED		1	/* the FEB told it */
#define FADE_ENDING_SILENCE		2	/* FADE v1: silence after STOP */
#define FADE_ENDING_RESET		3	/* FADE v1: RESET ended it, the FEB says */
#define FADE_ENDING_SWITCHED_OFF	4	/* FADE v1: the FEB has lost its power */
#define FADE_ENDING_OTHER_NUMBER	5	/* FADE v1: it has sent another number */
#define FADE_ENDING_OTHER_TRANSMISSION	6	/* FADE v1: it has begun another one */

/* Why nothing comes from the FEB; only FADE_INTERFACE_NONE stays. */
#define FADE_INTERFACE_NONE		1	/* no FEB, or its interface was removed */
#define FADE_INTERFACE_DOWN		2
#define FADE_INTERFACE_NO_CARRIER	4
#define FADE_INTERFACE_SMALL_MTU	8	/* less than a data frame */
#define FADE_INTERFACE_OTHER_ADDRESS	16	/* the FEB sends to that of START */
#define FADE_INTERFACE_PORT		32	/* its bridge, bond or team has the frames */

/**
 * struct fade_interface - the interface of the FEB
 * @state: FADE_INTERFACE_*, or 0
 * @downs: how often it went down since FADE_IOC_GETMAC
 */
struct fade_interface {
	__u32 state;
	__u32 downs;
};

#define FADE_IOC_READPTRS64	_IOR(FADE_IOC_MAGIC, 0x41, struct fade_pointers64)
#define FADE_IOC_GETSTATS	_IOR(FADE_IOC_MAGIC, 0x42, struct fade_statistics)

/* Changes the settings, before the ring is mapped and a FEB associated. */
#define FADE_IOC_SETCONFIG	_IOW(FADE_IOC_MAGIC, 0x43, struct fade_config)

/* As FADE_IOC_SETWAKEUP, up to the whole ring. */
#define FADE_IOC_SETTHRESHOLD	_IO(FADE_IOC_MAGIC, 0x47)

/* The kind of the FEB. */
#define FADE_IOC_GETKIND	_IOR(FADE_IOC_MAGIC, 0x46, struct fade_feb_kind)

/* Returns FADE_ENDING_*. */
#define FADE_IOC_GETENDING	_IO(FADE_IOC_MAGIC, 0x48)

#define FADE_TOLD_TRANSMISSION	1
#define FADE_TOLD_RESETS	2

/**
 * struct fade_told - what is known of the transmission beside its data
 * @transmission: its number on the FEB
 * @known: FADE_TOLD_*: which of the fields are known
 * @resets: FADE v1: RESETs that the FEB has obeyed since START; 255: or more
 * @reset_by: FADE v1: the computer that sent the last of them; zero: none
 */
struct fade_told {
	__u16 transmission;
	__u8 known;
	__u8 resets;
	__u8 reset_by[6];
};

/* Of the current transmission, or of the last one. */
#define FADE_IOC_GETTOLD	_IOR(FADE_IOC_MAGIC, 0x49, struct fade_told)

/*
 * The interface may go down and up in a transmission, which then goes on: the FEB
 * sends again what is not confirmed.
 */
#define FADE_IOC_GETINTERFACE	_IOR(FADE_IOC_MAGIC, 0x4A, struct fade_interface)

/*
 * /dev/l3_fpga_ctl: for any number of programs, in addition to those that use
 * the devices.
 */

/**
 * struct fade_feb_command - a command to a FEB, also to one of another program
 * @feb: the FEB; a free device is used if none is associated with it
 * @command: STOP, IDENTIFY, RESET BY or a user command
 */
struct fade_feb_command {
	struct fade_slave_id feb;
	struct fade_user_command command;
} __attribute__((packed));

/* Counters of frames that belong to no device, since the module was loaded. */
struct fade_link_statistics {
	__u64 frames;			/* received, of all kinds */
	__u64 other_destination;	/* dropped: for another computer */
	__u64 truncated;		/* dropped: shorter than their header */
	__u64 wrong_version;		/* dropped */
	__u64 wrong_type;		/* dropped: its type, or that of the interface */
	__u64 unknown_feb;		/* dropped: no device has the FEB */
	__u64 resets;			/* sent to such FEBs */
	__u64 no_memory;		/* dropped */
	__u64 send_errors;		/* frames that could not be sent */
};

#define FADE_IOC_FEBCMD		_IOWR(FADE_IOC_MAGIC, 0x44, struct fade_feb_command)
#define FADE_IOC_GETLINK	_IOR(FADE_IOC_MAGIC, 0x45, struct fade_link_statistics)

#endif /* FADELINK_UAPI_H */
