# A regression by a threaded BLAS, then two processes that each bring it.
set.seed(1)
a <- matrix(rnorm(600 * 300), 600)
for (i in 1:4) b <- solve(crossprod(a), crossprod(a, a[, 1:5]))
d <- parallel::mclapply(1:4, function(i) sum(svd(a[1:200, 1:(100 + i)])$d), mc.cores = 2)
cat(format(sum(b) + sum(unlist(d)), digits = 6), "\n")
