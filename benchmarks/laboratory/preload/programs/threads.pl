# Two threads of the interpreter, each with a copy of it.
use strict;
use warnings;
use threads;

sub work {
    my $state = shift;
    $state = ($state * 1664525 + 1013904223) & 0xffffffff for 1 .. 2_000_000;
    return $state;
}
my $sum = 0;
$sum += $_->join() for map { threads->create(\&work, $_) } 1 .. 8;
print "$sum\n";
