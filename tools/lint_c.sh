#!/usr/bin/env bash
# The kernel's own checks of C sources: scripts/checkpatch.pl of Debian's linux-source-6.1 for all, sparse for the driver. Each finding is an error.
# (The compiler's warnings are errors in the build of the driver tests.)
#
# Usage: tools/lint_c.sh [FILE ...]     files of the driver, which may be elsewhere, with their own name; default: all C sources
set -euo pipefail
shopt -s extglob
top=$(realpath "$(dirname "$0")/..")
here=$PWD
cd "$top"
status=0

# The package has one archive of 140 MB; three files of it are used.
version=$(dpkg-query -W -f='${Version}' linux-source-6.1)
checkpatch=build/checkpatch/$version
if [ ! -e "$checkpatch/scripts/checkpatch.pl" ]; then
    mkdir -p build/checkpatch
    part=$(mktemp -d build/checkpatch/XXXXXX)
    tar -C "$part" --strip-components=1 -xf /usr/src/linux-source-6.1.tar.xz \
        linux-source-6.1/scripts/{checkpatch.pl,spelling.txt,const_structs.checkpatch}
    # Another one may have been quicker.
    mv -T "$part" "$checkpatch" 2>/dev/null || rm -r "$part"
fi
# In the folder of its options.
checkpatch() { (cd "$1" && perl "$top/$checkpatch/scripts/checkpatch.pl" --no-summary --terse --show-types -f "${@:2}") || status=1; }

# Of the kernel alone: its macros, its rule for types, and memory that signals do not write.
of_kernel=NEW_TYPEDEFS,PREFER_DEFINED_ATTRIBUTE_MACRO,ARRAY_SIZE,EMBEDDED_FUNCTION_NAME,VOLATILE,FUNCTION_ARGUMENTS,NAKED_SSCANF
if [ $# = 0 ]; then
    files=("$top"/driver/*.[ch])
    # Headers of the register maps are generated.
    checkpatch . --no-tree --max-line-length=120 --ignore $of_kernel tests/support/*.c driver/examples/*.c host/c/!(include)/*.[ch] \
        host/c/include/fadelink.h host/receiver/xdp/*.c bench/tools/*.c tests/driver/*.c
else
    mapfile -t files < <(cd "$here" && realpath "$@")
fi
checkpatch driver "${files[@]}"

# Sparse, in the build of the driver tests: what is compiled here, they use.
kernel=$(dpkg-query -W -f='${Depends}' linux-image-amd64 | sed -n 's/.*linux-image-\([^ ,]*\).*/\1/p')
folder=$top/build/driver/$kernel
goals=(modules)
if [ $# != 0 ]; then
    folder=$(mktemp -d)
    trap 'rm -r "$folder"' EXIT
    goals=()
    for file in "${files[@]}"; do [[ $file != *.c ]] || goals+=("$(basename "$file" .c).o"); done
fi
mkdir -p "$folder"
for file in driver/*.[ch] driver/Kbuild "${files[@]}"; do
    cmp -s "$file" "$folder/${file##*/}" || cp "$file" "$folder"
done
[ ${#goals[@]} = 0 ] ||
    make -s -k -C "/lib/modules/$kernel/build" M="$folder" W=1 C=2 CHECK=sparse CF='-D__CHECK_ENDIAN__ -Wsparse-error' "${goals[@]}" || status=1
exit $status
