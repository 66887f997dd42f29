/* Replays a corpus through a fuzz target without libFuzzer, so that gcc builds run it as a test.
 *
 * replay_NAME DIR...: every file of each folder once. Fails when a folder holds no file at all: an
 * empty corpus would prove nothing. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    enum { INPUT_MAX = 1 << 20 };
    uint8_t *data = malloc(INPUT_MAX);
    size_t size = data ? fread(data, 1, INPUT_MAX, file) : 0;
    fclose(file);
    /* A copy of the exact size, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(size ? size : 1);
    if (data && exact) {
        for (size_t i = 0; i < size; i++)
            exact[i] = data[i];
        LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    free(data);
    return 0;
}

static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (replay_file(path) == 0)
            count++;
    }
    if (dir)
        closedir(dir);
    printf("%s: %d inputs replayed\n", folder, count);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);
        if (count == 0)
            return 1;
        total += count;
    }
    return total > 0 ? 0 : 1;
}
