/*
 * Single filesystem operations in a tight loop.
 *
 * One process, one operation, and only the loop is timed: a shell or Python loop costs
 * more than a warm stat and would pull every ratio towards one. Prints seconds.
 *
 * The caches are warmed by an earlier run of the program, not by a pass before the
 * loop: a filesystem that forgets its pages at every open has to show it here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define CHUNK (1 << 20)
#define SMALL_FILE 1024
#define FILES_PER_DIRECTORY 1000

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_or_fail(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        fail(path);
    return fd;
}

static off_t size_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        fail("fstat");
    return st.st_size;
}

/* xorshift with a fixed seed, so that every variant visits the same offsets */
static uint64_t next_random(void)
{
    static uint64_t x = 88172645463325252ull;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static char *filled_buffer(size_t size)
{
    char *buffer = malloc(size);
    if (!buffer)
        fail("malloc");
    memset(buffer, 'r', size);
    return buffer;
}

static double sequential_read(const char *path)
{
    char *buffer = filled_buffer(CHUNK);
    double start = now();
    int fd = open_or_fail(path, O_RDONLY);
    ssize_t got;
    while ((got = read(fd, buffer, CHUNK)) > 0)
        ;
    if (got < 0)
        fail("read");
    close(fd);
    return now() - start;
}

static double random_read(const char *path, long count)
{
    char *buffer = filled_buffer(PAGE);
    int fd = open_or_fail(path, O_RDONLY);
    uint64_t pages = size_of(fd) / PAGE;
    double start = now();
    for (long i = 0; i < count; i++)
        if (pread(fd, buffer, PAGE, (off_t)(next_random() % pages) * PAGE) != PAGE)
            fail("pread");
    return now() - start;
}

/* Maps anew after as many touches as there are pages: by then most of them are faults no more. */
static double mapped_read(const char *path, long count)
{
    int fd = open_or_fail(path, O_RDONLY);
    uint64_t pages = size_of(fd) / PAGE;
    double start = now();
    for (long left = count; left > 0; left -= pages) {
        volatile char *map = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            fail("mmap");
        for (uint64_t i = 0; i < pages; i++)
            (void)map[(next_random() % pages) * PAGE];
        munmap((void *)map, pages * PAGE);
    }
    return now() - start;
}

static double write_blocks(const char *path, int flags, size_t block, long count)
{
    char *buffer = filled_buffer(block);
    double start = now();
    int fd = open_or_fail(path, O_WRONLY | flags);
    for (long i = 0; i < count; i++)
        if (write(fd, buffer, block) != (ssize_t)block)
            fail("write");
    if (close(fd) < 0)
        fail("close");
    return now() - start;
}

static double stat_present(const char *path, long count)
{
    struct stat st;
    double start = now();
    for (long i = 0; i < count; i++)
        if (stat(path, &st) < 0)
            fail(path);
    return now() - start;
}

static double stat_absent(const char *path, long count)
{
    struct stat st;
    double start = now();
    for (long i = 0; i < count; i++)
        if (stat(path, &st) == 0 || errno != ENOENT)
            fail(path);
    return now() - start;
}

static double open_close(const char *path, long count)
{
    double start = now();
    for (long i = 0; i < count; i++)
        close(open_or_fail(path, O_RDONLY));
    return now() - start;
}

static const char *small_file_path(const char *dir, long i)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%03ld/file-%06ld.txt", dir, i / FILES_PER_DIRECTORY, i);
    return path;
}

static void make_directories(const char *dir, long count)
{
    char path[4096];
    for (long i = 0; i * FILES_PER_DIRECTORY < count; i++) {
        snprintf(path, sizeof path, "%s/%03ld", dir, i);
        if (mkdir(path, 0755) < 0)
            fail(path);
    }
}

static double create_files(const char *dir, long count)
{
    char *buffer = filled_buffer(SMALL_FILE);
    make_directories(dir, count);
    double start = now();
    for (long i = 0; i < count; i++) {
        int fd = open_or_fail(small_file_path(dir, i), O_WRONLY | O_CREAT | O_EXCL);
        if (write(fd, buffer, SMALL_FILE) != SMALL_FILE || close(fd) < 0)
            fail("write");
    }
    return now() - start;
}

static double unlink_files(const char *dir, long count)
{
    double start = now();
    for (long i = 0; i < count; i++)
        if (unlink(small_file_path(dir, i)) < 0)
            fail("unlink");
    return now() - start;
}

static int is_visible(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return 1;
    if (errno != ENOENT)
        fail(path);
    return 0;
}

/* From the signal that announces a new policy until the name has appeared or gone. */
static double await_policy(const char *path, long pid, int visible)
{
    if (is_visible(path) == visible) {
        errno = EALREADY;
        fail(path);
    }
    double start = now();
    if (kill(pid, SIGHUP) < 0)
        fail("kill");
    while (is_visible(path) != visible)
        ;
    return now() - start;
}

static double run(const char *operation, const char *path, long count)
{
    if (!strcmp(operation, "sequential-read"))
        return sequential_read(path);
    if (!strcmp(operation, "random-read"))
        return random_read(path, count);
    if (!strcmp(operation, "mapped-read"))
        return mapped_read(path, count);
    if (!strcmp(operation, "append"))
        return write_blocks(path, O_CREAT | O_EXCL | O_APPEND, PAGE, count);
    if (!strcmp(operation, "write-new"))
        return write_blocks(path, O_CREAT | O_EXCL, CHUNK, count);
    if (!strcmp(operation, "overwrite"))
        return write_blocks(path, 0, CHUNK, count);
    if (!strcmp(operation, "stat"))
        return stat_present(path, count);
    if (!strcmp(operation, "stat-absent"))
        return stat_absent(path, count);
    if (!strcmp(operation, "open-close"))
        return open_close(path, count);
    if (!strcmp(operation, "create"))
        return create_files(path, count);
    if (!strcmp(operation, "unlink"))
        return unlink_files(path, count);
    if (!strcmp(operation, "hide"))
        return await_policy(path, count, 0);
    if (!strcmp(operation, "show"))
        return await_policy(path, count, 1);
    errno = EINVAL;
    fail(operation);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: micro OPERATION PATH [COUNT | PID]\n");
        return 2;
    }
    printf("%.9f\n", run(argv[1], argv[2], argc > 3 ? atol(argv[3]) : 0));
    return 0;
}
