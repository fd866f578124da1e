// SPDX-License-Identifier: Apache-2.0
/*
 * What a reader sees of an interface that is not Ethernet, goes down, or changes.
 *
 * abi_interface DEVICE INTERFACE MAC
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../driver/fadelink_uapi.h"

static int failures, device, length;
static uint64_t taken;
static const uint8_t *ring;

static void check(int good, const char *what)
{
	if (!good) {
		printf("%s: not so (errno %s)\n", what, strerror(errno));
		failures++;
	}
}

static int fails(long result, int error)
{
	return result < 0 && errno == error;
}

static void shell(const char *command)
{
	check(system(command) == 0, command);
}

static int get_mac(const char *mac, const char *name)
{
	struct fade_slave_id id = {};

	sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &id.mac[0], &id.mac[1], &id.mac[2], &id.mac[3], &id.mac[4],
	       &id.mac[5]);
	strncpy(id.devname, name, sizeof(id.devname) - 1);
	return ioctl(device, FADE_IOC_GETMAC, &id);
}

static struct fade_interface now(void)
{
	struct fade_interface interface = {};

	check(ioctl(device, FADE_IOC_GETINTERFACE, &interface) == 0, "GETINTERFACE");
	return interface;
}

/* Reads and verifies until @bytes more have come, or the end. */
static void take(uint64_t bytes)
{
	uint64_t end = taken + bytes;

	while (taken < end && !failures) {
		struct pollfd descriptor = { .fd = device, .events = POLLIN };
		struct fade_pointers64 p;

		poll(&descriptor, 1, 1000);
		check(ioctl(device, FADE_IOC_READPTRS64, &p) == 0, "READPTRS64");
		check(p.error == 0, "no error");
		for (uint64_t at = p.tail; at < p.head; at += 8, taken += 8) {
			uint64_t word;

			memcpy(&word, ring + (p.origin + at) % length, 8);
			if (word != taken / 8)
				check(0, "each word");
		}
		check(ioctl(device, FADE_IOC_WRITEPTRS, p.head - p.tail) == 0, "WRITEPTRS");
		if (p.state == FADE_STATE_COMPLETE)
			return;
	}
}

static struct fade_link_statistics counted(void)
{
	struct fade_link_statistics link = {};
	int control = open("/dev/l3_fpga_ctl", O_RDWR);

	check(ioctl(control, FADE_IOC_GETLINK, &link) == 0, "GETLINK");
	close(control);
	return link;
}

/* Frames of the ethertype from interfaces that have no Ethernet header. */
static void foreign(const char *mac)
{
	static const uint8_t data[] = { 0xa5, 0xa5 };
	struct ifreq request = { .ifr_flags = IFF_TUN };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0xfade), .sll_ifindex = 1, .sll_halen = 6 };
	int tun = open("/dev/net/tun", O_RDWR), packets = socket(AF_PACKET, SOCK_DGRAM, 0);
	uint8_t frame[1100] = { 0, 0, 0xfa, 0xde };
	struct fade_link_statistics before = counted();

	check(fails(get_mac(mac, "lo"), EMEDIUMTYPE), "GETMAC of lo");
	memcpy(frame + 4, data, 2);
	for (int i = 1; i <= 40; i++)
		check(sendto(packets, data, 2, 0, (void *)&to, sizeof(to)) == 2, "a frame over lo");
	close(packets);
	strcpy(request.ifr_name, "tun0");
	if (tun >= 0 && ioctl(tun, TUNSETIFF, &request) == 0) {
		shell("ip link set tun0 up");
		check(fails(get_mac(mac, "tun0"), EMEDIUMTYPE), "GETMAC of a tunnel");
		/* With nothing before them where a header is looked for. */
		for (int i = 5; i < 1100; i += 100)
			check(write(tun, frame, i) == i, "a frame over a tunnel");
		check(counted().wrong_type - before.wrong_type == 40 + 11, "each one is dropped for its interface");
		check(counted().unknown_feb == before.unknown_feb, "none is one of a FEB");
	}
	if (tun >= 0)
		close(tun);
	if (system("brctl addbr br9 && brctl addif br9 eth1") == 0) {
		shell("ip link set eth1 up");
		check(fails(get_mac(mac, "eth1"), EMEDIUMTYPE), "GETMAC of a port of a bridge");
		shell("ip link set eth1 down; brctl delif br9 eth1; brctl delbr br9");
	}
}

int main(int argc, char **argv)
{
	struct fade_user_command command = { .command = 0x0207, .retries = 2, .argument = 1, .timeout = 5 };

	if (argc != 4)
		return 2;
	device = open(argv[1], O_RDWR);
	length = ioctl(device, FADE_IOC_GETBUFLEN);
	ring = mmap(NULL, length, PROT_READ, MAP_SHARED, device, 0);
	check(ring != MAP_FAILED, "mmap");
	foreign(argv[3]);

	shell("ip link set eth0 down");
	check(fails(get_mac(argv[3], argv[2]), ENETDOWN), "GETMAC of an interface that is down");
	shell("ip link set eth0 up");
	check(get_mac(argv[3], argv[2]) == 0, "GETMAC");
	check(now().state == 0 && now().downs == 0, "nothing is in the way");

	shell("ip link set eth0 down");
	check(now().state & FADE_INTERFACE_DOWN && now().downs == 1, "it is down");
	check(fails(ioctl(device, FADE_IOC_STARTMAC), ENETDOWN), "START while it is down");
	check(fails(ioctl(device, FADE_IOC_USERCMD, &command), ENETDOWN), "a command while it is down");
	shell("ip link set eth0 up");
	check(ioctl(device, FADE_IOC_STARTMAC) == 0, "START when it is up again");
	take(1000000);

	/* A board has one window of packets under way at most, and these may be in the ring already. */
	shell("ip link set eth0 address 02:00:00:00:00:99");
	check(now().state & FADE_INTERFACE_OTHER_ADDRESS, "the address is another one");
	shell("ip link set eth0 address 52:54:00:12:34:56");
	check(now().state == 0, "the address is back");
	take(1000000);
	shell("ip link set eth0 mtu 1500");
	check(now().state & FADE_INTERFACE_SMALL_MTU, "the MTU is too small");
	shell("ip link set eth0 mtu 9000");
	take(1000000);

	shell("ip link set eth0 down; ip link set eth0 name feb9; ip link set feb9 up");
	check(now().state == 0 && now().downs == 2, "it has been down, and has another name");
	take(1000000);
	shell("ip link set feb9 down; sleep 3; ip link set feb9 name eth0; ip link set eth0 up");
	take(1000000);
	check(ioctl(device, FADE_IOC_STOPMAC) == 0, "STOP");
	take(UINT64_MAX / 2);
	check(ioctl(device, FADE_IOC_GETENDING) == FADE_ENDING_CONFIRMED, "the end");
	check(now().downs == 3, "three times down");
	if (!failures)
		printf("interface: %llu bytes, all right\n", (unsigned long long)taken);
	return failures != 0;
}
