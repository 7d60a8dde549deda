//! Nothing here: the programs are beside this folder, one file each.
