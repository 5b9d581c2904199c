/* The CPU budget of control groups, version 1 and 2: quota over period of the process's group and of every group above it. */
#include "team/topology.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
enum { LENGTH = 4096 };

/* Whether a comma-separated list has the word. */
static int lists(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return 1;
    return 0;
}

/* /proc/self/mountinfo writes blanks and backslashes of paths in octal. */
static void unescape(char *path) {
    char *to = path;
    for (const char *from = path; *from; to++)
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    *to = 0;
}

static FILE *open_under(const char *root, const char *directory, const char *name) {
    char path[3 * LENGTH];
    const int length = snprintf(path, sizeof path, "%s%s%s", root, directory, name);
    return length > 0 && length < (int)sizeof path ? fopen(path, "re") : NULL;
}

/* The process's group in the hierarchy of version 2, or of the cpu controller of version 1. */
static int group_of(const char *root, int version, char *group) {
    char line[LENGTH];
    int found = 0;
    FILE *file = open_under(root, "/proc/self/cgroup", "");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        controllers++;
        path[strcspn(path, "\n")] = 0;
        found = version == 2 ? !*controllers && line[0] == '0' && line[1] == ':' : lists(controllers, "cpu");
        if (found) strcpy(group, path);
    }
    if (file) fclose(file);
    return found;
}

/* Where that hierarchy is mounted, and which of its groups is the root of the mount. */
static int mount_of(const char *root, int version, char *point, char *top) {
    char line[LENGTH], kind[64], options[LENGTH];
    int found = 0;
    FILE *file = open_under(root, "/proc/self/mountinfo", "");
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2) continue;
        if (sscanf(rest, " - %63s %*s %4095s", kind, options) != 2) continue;
        found = version == 2 ? strcmp(kind, "cgroup2") == 0 : strcmp(kind, "cgroup") == 0 && lists(options, "cpu");
    }
    if (file) fclose(file);
    if (!found) return 0;
    unescape(point);
    unescape(top);
    return 1;
}

/* quota / period in whole CPUs, at least 1; SIZE_MAX where the group has no quota of its own. */
static size_t quota_of(const char *root, const char *directory, int version) {
    char word[32];
    long long quota = -1, period = 0;
    FILE *file = open_under(root, directory, version == 2 ? "/cpu.max" : "/cpu.cfs_quota_us");
    if (!file) return SIZE_MAX;
    if (version == 2) {
        if (fscanf(file, "%31s %lld", word, &period) == 2 && strcmp(word, "max") != 0) quota = strtoll(word, NULL, 10);
    } else if (fscanf(file, "%lld", &quota) == 1) {
        FILE *other = open_under(root, directory, "/cpu.cfs_period_us");
        if (!other || fscanf(other, "%lld", &period) != 1) period = 0;
        if (other) fclose(other);
    }
    fclose(file);
    if (quota <= 0 || period <= 0) return SIZE_MAX;
    return quota < period ? 1 : (size_t)(quota / period);
}

static size_t tightest(const char *root, int version) {
    char group[LENGTH], point[LENGTH], top[LENGTH], directory[2 * LENGTH];
    size_t least = SIZE_MAX;
    if (!group_of(root, version, group) || !mount_of(root, version, point, top)) return SIZE_MAX;
    const size_t above = strcmp(top, "/") == 0 ? 0 : strlen(top);
    /* a group outside the mount (a container's namespace) is seen as the root of the mount */
    const int within = strncmp(group, top, above) == 0 && (group[above] == '/' || !group[above]) && !strstr(group, "/..");
    snprintf(directory, sizeof directory, "%s%s", point, within ? group + above : "");
    const size_t floor = strlen(point);
    for (;;) {
        size_t length = strlen(directory);
        while (length > floor && directory[length - 1] == '/') directory[--length] = 0;
        const size_t quota = quota_of(root, directory, version);
        if (quota < least) least = quota;
        if (length <= floor) return least;
        while (length > floor && directory[length - 1] != '/') length--;
        directory[length] = 0;
    }
}

/* Clause: TEAM-BUDGET-1 */
size_t fc_cgroup_budget(const char *root) {
    const size_t two = tightest(root, 2), one = tightest(root, 1), least = two < one ? two : one;
    return least == SIZE_MAX ? 0 : least;
}
#else
size_t fc_cgroup_budget(const char *root) {
    (void)root;
    return 0;
}
#endif
