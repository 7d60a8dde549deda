//! Functions that came with version 4 of MPI. Not counted are what persistent collective and partitioned
//! operations move, and what `MPI_Isendrecv` receives: the status that MPICH gives for it says nothing of that.

use std::ffi::{c_char, c_int, c_void};

use mpi_sys::{
    MPI_Aint, MPI_Comm, MPI_Count, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Op, MPI_Request,
};

use super::call::{calls_of_4, sent};
use super::communicators::{begun, made};

// Messages between two ranks.
calls_of_4! {
    mod messages;
    fn MPI_Isendrecv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) after {
        sent(comm, dest, sendcount, sendtype);
    }
    fn MPI_Isendrecv_replace(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
        recvtag: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) after {
        sent(comm, dest, count, datatype);
    }
}
calls_of_4! {
    static MESSAGES;
    fn MPI_Psend_init(
        buf: *const c_void, partitions: c_int, count: MPI_Count, datatype: MPI_Datatype, dest: c_int,
        tag: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Precv_init(
        buf: *mut c_void, partitions: c_int, count: MPI_Count, datatype: MPI_Datatype, source: c_int,
        tag: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Pready(partition: c_int, request: MPI_Request) only {}
    fn MPI_Pready_range(first: c_int, last: c_int, request: MPI_Request) only {}
    fn MPI_Pready_list(length: c_int, partitions: *const c_int, request: MPI_Request) only {}
    fn MPI_Parrived(request: MPI_Request, partition: c_int, flag: *mut c_int) only {}
}

// Persistent collective operations.
calls_of_4! {
    mod persistent;
    fn MPI_Bcast_init(
        buffer: *mut c_void, count: Count, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Reduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Allreduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Scan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Exscan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Gather_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) only {}
    fn MPI_Gatherv_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, root: c_int,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Scatter_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) only {}
    fn MPI_Scatterv_init(
        sendbuf: *const c_void, sendcounts: *const Count, displs: *const Displacement,
        sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, root: c_int,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Allgather_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Allgatherv_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Alltoall_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Alltoallv_init(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement,
        sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) only {}
    fn MPI_Alltoallw_init(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const Displacement, recvtypes: *const MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) only {}
    fn MPI_Reduce_scatter_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const Count, datatype: MPI_Datatype,
        op: MPI_Op, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Reduce_scatter_block_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Neighbor_allgather_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Neighbor_allgatherv_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Neighbor_alltoall_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) only {}
    fn MPI_Neighbor_alltoallv_init(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement,
        sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) only {}
    fn MPI_Neighbor_alltoallw_init(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const MPI_Aint,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) only {}
}
calls_of_4! {
    static PERSISTENT;
    fn MPI_Barrier_init(comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) only {}
}

// Communicators.
calls_of_4! {
    static COMMUNICATORS;
    fn MPI_Comm_idup_with_info(
        comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm, request: *mut MPI_Request,
    ) after {
        begun(newcomm, comm);
    }
    fn MPI_Comm_create_from_group(
        group: MPI_Group, stringtag: *const c_char, info: MPI_Info, errhandler: MPI_Errhandler,
        newcomm: *mut MPI_Comm,
    ) after {
        made(newcomm);
    }
    fn MPI_Intercomm_create_from_groups(
        local_group: MPI_Group, local_leader: c_int, remote_group: MPI_Group, remote_leader: c_int,
        stringtag: *const c_char, info: MPI_Info, errhandler: MPI_Errhandler, newintercomm: *mut MPI_Comm,
    ) after {
        made(newintercomm);
    }
}
