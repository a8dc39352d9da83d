# Text to train on that the machine has, shared by the scripts beside it; to be sourced by bash after common.sh.
# shellcheck shell=bash disable=SC2154

corpus_max_bytes=20000000  # far more than a few minutes of training get to see
corpus_min_bytes=1000000   # of a corpus of ours; less is learnt by heart

# Prints the sources below a folder, each ended by a zero byte, in an order that is the same everywhere.
sources_below() {
  find "$1" \( -name test -o -name tests -o -name '*-packages' -o -name encodings \) -prune -o \
    -type f \( -name '*.py' -o -name '*.pm' -o -name '*.pod' \) -size +0 -print0 2>/dev/null | LC_ALL=C sort -z
}

# Writes the files that stdin names (each ended by a zero byte) into the corpus given, up to its size limit.
write_corpus() {
  # head leaves when it has enough; that cat is then cut off is no failure.
  { xargs -0 -r cat -- || true; } 2>/dev/null | head -c "$corpus_max_bytes" >"$1"
}

# Prints the folder of Python's standard library, if there is one.
python_library() {
  if command -v python3 >/dev/null; then
    python3 -c 'import sysconfig; print(sysconfig.get_paths()["stdlib"])'
  else
    find /usr/lib -maxdepth 1 -name 'python3.*' | sort -V | tail -n 1
  fi
}

# Makes a corpus (first argument) of the sources below a folder; succeeds if that is text enough.
try_corpus() {
  [[ -d $2 ]] || return 1
  sources_below "$2" | write_corpus "$1"
  (($(stat -c %s "$1") >= corpus_min_bytes))
}

# Makes a corpus (its file is the argument) of the text that the system has, or gets from its package manager; says what
# it is, and sets corpus_prompt to how such text may begin.
collect_corpus() {
  corpus_prompt='def '
  if try_corpus "$1" "$(python_library)"; then
    echo "Text: the sources of Python's standard library."
  elif echo "Getting the sources of Python's standard library (package libpython3-stdlib) …" &&
    "$root/scripts/bootstrap" libpython3-stdlib >/dev/null && try_corpus "$1" "$(python_library)"; then
    echo "Text: the sources of Python's standard library."
  elif try_corpus "$1" /usr/share/perl; then
    echo "Text: Perl's modules, as Python's library is not to be had."
    # shellcheck disable=SC2034  # read by those who source this
    corpus_prompt='sub '
  else
    die "found no text to train on (neither Python's library nor Perl's is there); name text files of your own:" \
      "scripts/${0##*/} FILE …"
  fi
}
