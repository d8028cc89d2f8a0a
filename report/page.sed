# A style sheet as a string of C, without its comments.
/^\/\*/,/\*\/$/d
s/["\\]/\\&/g
s/.*/"&\\n"/
