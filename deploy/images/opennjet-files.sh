#!/bin/sh
# Copies an installation of OpenNJet, with the libraries of this system that its programs need, so that it runs on another one.
#   sh opennjet-files.sh PREFIX TARGET
# File capabilities stay behind: with them the program does not start where a container has dropped them, and the loader would
# leave LD_LIBRARY_PATH aside. What belongs to the C library stays behind too: each system has its own.
set -eu
prefix=$1
target=$2
c_library='/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|crypt|nsl|anl|nss_[a-z]+))\.so(\.[0-9]+)*$'

mkdir -p "$target/lib"
for part in sbin modules lualib lib conf; do
  if [ -d "$prefix/$part" ]; then cp -dR "$prefix/$part" "$target/"; fi
done

# Of what comes along, whatever may be a program or library: ldd passes over the rest.
find "$target/sbin" "$target/modules" "$target/lualib" "$target/lib" -type f \( -perm -u+x -o -name '*.so*' \) 2>/dev/null |
  while read -r file; do
    LD_LIBRARY_PATH="$target/lib" ldd "$file" 2>/dev/null || true
  done |
  sed -n 's/^.* => \(\/[^ ]*\) (0x[0-9a-f]*)$/\1/p' |
  sort -u |
  grep -Ev "$c_library" |
  while read -r library; do
    case $library in
      "$target"/*) ;;
      *) cp -L "$library" "$target/lib/" ;;
    esac
  done
