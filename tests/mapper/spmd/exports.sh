#!/bin/sh
# Does the library that programs link export servet_spmd_* and no other name? usage: exports.sh LIBSERVET_SPMD.A
others=$(nm -g --defined-only "$1" | awk '$2 == "T" && $3 !~ /^servet_spmd_/ {print $3}')
[ -z "$others" ] || { echo "exported too:" $others; exit 1; }
nm -g --defined-only "$1" | grep -q ' T servet_spmd_open$'
