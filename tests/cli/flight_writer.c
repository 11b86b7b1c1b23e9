/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker and its daemon for tests: `flight_writer PROGRAM FOLDER RANK BATCHES` writes
 * a recorder as fast as a reader can follow while PROGRAM summarizes it, as hostd
 * would have it, then closes the window. Leaves FOLDER/rankN.{ptfp,flight,flight.sidecar}
 * and prints how many records it wrote.
 */
#include "format/flightlog/flightlog.h"
#include "format/sidecar/sidecar.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define US NSEC_PER_USEC
#define STEP_NS (10 * NSEC_PER_MSEC)
#define START_NS (5 * NSEC_PER_SEC)
#define OPERATORS 400 /* of one iteration, nested in pairs */

struct writer {
	struct flight *flight;
	int flight_fd, sidecar_fd, rank;
	uint32_t frames[4], nodes[4]; /* main, loader, forward, optimizer */
	uint32_t operators[2], collective, group;
	uint64_t written;
	char folder[256];
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint32_t add_string(struct flight *f, const char *text)
{
	uint32_t id = f->string_cnt, off = f->text_len;

	memcpy(&f->text[off], text, strlen(text));
	f->strings[id] = (struct flight_string){ off, (uint32_t)strlen(text) };
	f->text_len = off + (uint32_t)strlen(text);
	f->string_cnt = id + 1;
	return id;
}

static uint32_t add_node(struct flight *f, uint32_t parent, const char *file, const char *name)
{
	uint32_t frame = f->frame_cnt, node = f->node_cnt;

	f->frames[frame] =
		(struct flight_frame){ add_string(f, file), add_string(f, name), 10 + frame, 0 };
	f->frame_cnt = frame + 1;
	f->nodes[node] = (struct flight_node){ parent, frame };
	f->node_cnt = node + 1;
	return node;
}

static void open_recorder(struct writer *w)
{
	struct flight *f;

	w->flight_fd = memfd_create("flight", MFD_ALLOW_SEALING);
	w->sidecar_fd = memfd_create("sidecar", 0);
	if (w->flight_fd < 0 || ftruncate(w->flight_fd, sizeof(*f)) < 0 ||
	    fcntl(w->flight_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		fail("memfd");
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, w->flight_fd, 0);
	if (f == MAP_FAILED)
		fail("mmap");
	f->block.magic = BLOCK_MAGIC;
	f->block.version = BLOCK_VERSION;
	f->block.ring_cnt = MARK_RING_CNT;
	f->layout_bytes = sizeof(*f);
	f->rank = w->rank;
	f->world_size = 2;
	f->pid = 100;
	f->training_tid = 101;
	f->mono_ns = START_NS;
	f->wall_ns = 1000 * START_NS;
	f->string_cnt = f->frame_cnt = f->node_cnt = 1;
	(void)snprintf(f->lanes[0].name, sizeof(f->lanes[0].name), "python");
	f->lanes[0].tid = 101;
	f->lanes[1].tid = 102;
	f->lane_cnt = 2;
	w->flight = f;
}

static void add_names(struct writer *w)
{
	struct flight *f = w->flight;

	w->nodes[0] = add_node(f, 0, "/job/train.py", "<module>");
	w->nodes[1] = add_node(f, w->nodes[0], "/v/site-packages/torch/utils/data/dataloader.py",
			       "__next__");
	w->nodes[2] = add_node(f, w->nodes[0], "/job/net.py", "forward");
	w->nodes[3] = add_node(f, w->nodes[0], "/v/site-packages/torch/optim/sgd.py", "step");
	w->operators[0] = add_string(f, "aten::linear");
	w->operators[1] = add_string(f, "aten::addmm");
	w->collective = add_string(f, "gloo:all_reduce");
	w->group = add_string(f, "0");
}

static void push(struct writer *w, uint32_t lane, struct ring_record record)
{
	ring_push(w->flight->window_records[lane], FLIGHT_WINDOW_RECORD_CNT,
		  &w->flight->lanes[lane].window_head, &record);
	w->written++;
}

static void mark(struct writer *w, enum mark what, int64_t time_ns)
{
	struct ring_record record = { .time_ns = time_ns, .kind = (uint16_t)what };

	ring_push(w->flight->block.ring, MARK_RING_CNT, &w->flight->block.head, &record);
	w->written++;
}

static void sample(struct writer *w, int64_t time_ns, uint32_t node)
{
	struct ring_record record = { .time_ns = time_ns,
				      .value = 500 * US,
				      .kind = FLIGHT_SAMPLE,
				      .detail = FLIGHT_SAMPLE_WINDOW,
				      .extra = (uint64_t)101 << 32 | node };

	ring_push(w->flight->samples, FLIGHT_SAMPLE_CNT, &w->flight->sample_head, &record);
	w->written++;
}

/* Loader 2 ms, forward 6 ms, waiting for the collective 1 ms, optimizer 1 ms. */
static void write_iteration(struct writer *w, int64_t at)
{
	int64_t forward = at + 2000 * US, reduce = at + 8000 * US;

	mark(w, MARK_DATALOADER, at);
	mark(w, MARK_DATALOADER_END, forward);
	for (int i = 0; i < OPERATORS / 2; i++) {
		int64_t begin = forward + i * 30 * US;

		push(w, 0,
		     (struct ring_record){ begin + 2 * US, 20 * US, 0, FLIGHT_OPERATOR, 0,
					   w->operators[1] });
		push(w, 0,
		     (struct ring_record){ begin, 25 * US, 0, FLIGHT_OPERATOR, 0,
					   w->operators[0] });
	}
	push(w, 1,
	     (struct ring_record){ reduce - 2000 * US, 3000 * US, 0, FLIGHT_COLLECTIVE, 0,
				   w->collective });
	push(w, 1,
	     (struct ring_record){ reduce, 1 << 20, 0, FLIGHT_COLLECTIVE_ARGS, 0,
				   (uint64_t)(at / STEP_NS) });
	push(w, 1,
	     (struct ring_record){ reduce, (int64_t)2 << 32 | w->group, 0, FLIGHT_COLLECTIVE_GROUP,
				   0, 0 });
	mark(w, MARK_OPTIMIZER_BEGIN, at + 9000 * US);
	for (int64_t t = 0; t < 10; t++)
		sample(w, at + t * 1000 * US + 500 * US,
		       w->nodes[t < 2	? 1
				: t < 8 ? 2
				: t < 9 ? 0
					: 3]);
	mark(w, MARK_OPTIMIZER, at + STEP_NS);
}

/* Gives the reader time: real workers do not write two million records a second. */
static void breathe(void)
{
	struct timespec pause = { .tv_nsec = 2 * NSEC_PER_MSEC };

	(void)nanosleep(&pause, NULL);
}

static void write_sidecar(struct writer *w, uint64_t iterations)
{
	struct sidecar sidecar = { .header = { .pid = 100,
					       .tid = 101,
					       .rank = w->rank,
					       .mono_ns = START_NS,
					       .wall_ns = 1000 * START_NS,
					       .start_ns = START_NS,
					       .end_ns = START_NS + (int64_t)iterations * STEP_NS,
					       .host = "node1" } };
	char path[300], data[1 << 16];
	size_t len;
	FILE *file;

	for (uint64_t i = 0; i <= iterations; i++) {
		if (vec_push(&sidecar.iterations,
			     (struct sidecar_iteration){ i, START_NS + (int64_t)i * STEP_NS }) < 0)
			fail("sidecar");
	}
	(void)snprintf(path, sizeof(path), "%s/rank%d.flight.sidecar", w->folder, w->rank);
	if (sidecar_write(&sidecar, path, NULL) < 0)
		fail(path);
	sidecar_done(&sidecar);
	file = fopen(path, "r");
	while (file != NULL && (len = fread(data, 1, sizeof(data), file)) > 0) {
		if (write(w->sidecar_fd, data, len) != (ssize_t)len)
			fail("memfd");
	}
	if (file == NULL || fclose(file) != 0)
		fail(path);
}

static _noreturn_ void run_program(const struct writer *w, const char *program, int control)
{
	char output[300], keep[300], rank[16];

	(void)snprintf(output, sizeof(output), "%s/rank%d.ptfp", w->folder, w->rank);
	(void)snprintf(keep, sizeof(keep), "%s/rank%d.flight", w->folder, w->rank);
	(void)snprintf(rank, sizeof(rank), "%d", w->rank);
	/* Above the numbers that the program is given. */
	if (dup2(fcntl(w->flight_fd, F_DUPFD, 10), 3) < 0 ||
	    dup2(fcntl(w->sidecar_fd, F_DUPFD, 10), 4) < 0 || dup2(control, 0) < 0)
		fail("dup2");
	(void)execl(program, "perftracker", "summarize", "--flight-fd", "3", "--sidecar-fd", "4",
		    "--rank", rank, "--keep", keep, "-o", output, (char *)NULL);
	fail(program);
	_exit(127);
}

static pid_t start_program(const struct writer *w, const char *program, int *ret_control)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0)
		run_program(w, program, ends[0]);
	(void)close(ends[0]);
	*ret_control = ends[1];
	return pid;
}

int main(int argc, char **argv)
{
	struct writer w = { .rank = argc == 5 ? atoi(argv[3]) : 0 };
	uint64_t batches = argc == 5 ? strtoull(argv[4], NULL, 10) : 0, iterations = 0;
	int control, status = 0;
	pid_t pid;

	if (argc != 5)
		return 2;
	(void)snprintf(w.folder, sizeof(w.folder), "%s", argv[2]);
	open_recorder(&w);
	add_names(&w);
	pid = start_program(&w, argv[1], &control);
	for (uint64_t i = 0; i < batches; i++, breathe()) {
		for (int j = 0; j < 5; j++)
			write_iteration(&w, START_NS + (int64_t)iterations++ * STEP_NS);
	}
	write_sidecar(&w, iterations);
	(void)close(control);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	printf("%llu %llu\n", (unsigned long long)w.written, (unsigned long long)iterations);
	return 0;
}
